// What the whole page knows: the repositories, how it stands with the server and the daemon, the time, the place.
import { Api, Failure } from '../api';
import type { Link, Message } from '../events';
import { fetcherOf } from '../file';
import { newsOf, type News } from '../model/live';
import { Refresher } from '../refresh';
import { format, parse, takeToken, type Route } from '../route';
import { ofBrowser, SharedStream } from '../share';
import type { Health, RunFile, Session, StatusView, Steer, Steered } from '../wire';
import { setMachine } from './machine.svelte';
import type { Run } from './run.svelte';
import { nobody, Steering } from './steering.svelte';

/** How it stands with what the page shows. */
export type Freshness = Link | 'away' | 'static' | 'locked' | 'file';

type Listener = (news: News) => void;

export class Page {
  readonly api: Api;
  route = $state<Route>(parse(''));
  now: number;
  health = $state<Health | null>(null);
  repos = $state.raw<StatusView[] | null>(null);
  error = $state.raw<Failure | null>(null);
  /** The run that is open. */
  shown = $state.raw<Run | null>(null);
  readonly steering: Steering;
  /** When something was last heard of the server. */
  heard = $state(Date.now());
  /** Whether another version serves now than the page came from. */
  isOutdated = $state(false);
  #served: string | null = null;
  #link = $state<Link>('connecting');
  #gone = $state(false);
  #locked = $state(false);
  #begun = false;
  #output = false;
  #listeners = new Set<Listener>();
  /** Null: what is shown does not change. */
  #stream: SharedStream | null;
  #refresher = new Refresher<'repos' | 'health'>((error) => this.#failed(error));

  /** Shows what a server tells, or what is in a file, as it was when that was made. */
  constructor(readonly file: RunFile | null = null) {
    const api = file ? new Api(fetcherOf(file), false) : new Api();
    this.api = api;
    this.now = $state(file ? Date.parse(file.made_at) : Date.now());
    this.steering = new Steering(file ? nobody : undefined);
    const ears = {
      message: (message: Message) => this.#message(message),
      link: (link: Link) => this.#linked(link),
    };
    this.#stream = file ? null : new SharedStream(ears, ofBrowser());
    this.#refresher.knows('repos', async () => this.#arrived(await api.repos()));
    this.#refresher.knows('health', async () => this.#told(await api.health()));
  }

  get freshness(): Freshness {
    if (this.file) return 'file';
    if (this.#locked) return 'locked';
    if (this.#link !== 'live') return this.#link;
    if (this.health?.static) return 'static';
    return this.#gone ? 'away' : 'live';
  }

  /** Begins: takes the token out of the address, reads the state, listens. */
  async start(): Promise<void> {
    addEventListener('hashchange', () => void this.#arrive());
    addEventListener('popstate', () => void this.#arrive());
    document.addEventListener('click', (event) => this.#clicked(event));
    if (this.file) this.#open(this.file);
    else setInterval(() => (this.now = Date.now()), 1000);
    document.addEventListener('visibilitychange', () => this.#listen());
    addEventListener('pagehide', () => this.#stream?.rest());
    await this.#arrive();
  }

  /** A file is opened at its run. */
  #open({ repo, run }: RunFile): void {
    if (location.hash.length < 2) history.replaceState(null, '', format({ repo, run }));
  }

  /** Follows the news until the returned function is called. */
  follow(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Goes to a place. The browser's own way would take the focus from where it is. */
  go(place: string): void {
    if (place !== location.hash) history.pushState(null, '', place);
    void this.#arrive();
  }

  #clicked(event: MouseEvent): void {
    const link = event.target instanceof Element ? event.target.closest('a[href^="#/"]') : null;
    const aside = event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey;
    if (!link || aside || event.defaultPrevented) return;
    event.preventDefault();
    this.go(link.getAttribute('href') ?? '#/');
  }

  /** Asks for what agents and guards print while it is looked at. */
  wantOutput(wanted: boolean): void {
    if (this.#output === wanted) return;
    this.#output = wanted;
    this.#listen();
  }

  /** Reads the list of repositories anew. */
  refresh(): void {
    this.#refresher.need('repos', 'health');
  }

  async #arrive(): Promise<void> {
    const { token, rest } = takeToken(location.hash);
    if (token !== null) {
      history.replaceState(null, '', rest === '' ? location.pathname : rest);
      this.#locked = false;
      await this.api.session(token).then(
        (session) => this.#entered(session),
        (error: unknown) => this.#failed(error),
      );
    }
    this.route = parse(location.hash);
    if (this.#locked) return;
    if (token !== null || this.repos === null) {
      this.#begun = true;
      this.refresh();
      this.#listen();
    }
  }

  #told(health: Health): void {
    this.health = health;
    setMachine(health.host ?? null);
  }

  #entered({ steer_token: token, ...health }: Session): void {
    this.#told(health);
    if (token != null) this.steering.take(token);
  }

  /** Whether the server takes orders, and this page may give them. */
  get steers(): boolean {
    return this.health?.steers === true && this.steering.may;
  }

  /** The run that a command has to name; null where its working tree says which one is meant. A file is read later. */
  named(repo: string, run: string): string | null {
    const current = this.repos?.find((one) => one.repo.id === repo)?.run?.summary.id;
    return !this.file && current === run ? null : run;
  }

  /** Gives what has orders to a run of a repository. */
  at =
    (repo: string, run: string) =>
    (order: Steer): Promise<Steered> =>
      this.steering.order(this.api, { repo, run }, order);

  /** Nobody follows what they do not see. */
  #listen(): void {
    if (!this.#begun || this.#locked) return;
    if (document.hidden) this.#stream?.rest();
    else this.#stream?.follow(this.#output);
  }

  #linked(link: Link): void {
    const back = link === 'live' && this.#link !== 'live' && this.#link !== 'connecting';
    this.#link = link;
    if (link === 'live') this.heard = Date.now();
    // A server that was begun anew does not know the cookie; it says so when it is asked.
    if (link === 'offline' || back) this.#refresher.need('health');
  }

  #message(message: Message): void {
    this.heard = Date.now();
    if (message.event === 'hello') this.#hello(message.data);
    const news = newsOf(message);
    if (news.kind === 'gone') this.#gone = true;
    if (news.kind === 'all') this.#gone = false;
    if (news.kind === 'all' || news.kind === 'gone') this.refresh();
    else if (news.kind === 'stale' && news.what.includes('status')) this.#refresher.need('repos');
    for (const listener of this.#listeners) listener(news);
  }

  #hello(data: string): void {
    const health = JSON.parse(data) as Health;
    this.#served ??= health.version;
    this.isOutdated = health.version !== this.#served;
    this.#told(health);
  }

  #arrived(repos: StatusView[]): void {
    this.repos = repos;
    this.error = null;
    this.#gone = false;
  }

  #failed(error: unknown): void {
    if (!(error instanceof Failure)) throw error;
    this.error = error;
    if (error.code === 'daemon_away' || error.code === 'protocol_mismatch') this.#gone = true;
    if (error.code === 'unauthorized') {
      this.#locked = true;
      this.#stream?.rest();
    }
  }
}
