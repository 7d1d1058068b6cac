// What the page knows of one run: its state, tree and iterations, and what was asked for besides. Stays current by the news.
import { Failure } from '../api';
import { agree, enter, everything, type News, type Stale } from '../model/live';
import { forest, spent, type Forest, type Now } from '../model/tree';
import { bars, liveOf, type Live } from '../model/timeline';
import { Refresher } from '../refresh';
import type {
  ConfigShowReply,
  IterationView,
  MemoryReply,
  QuestionView,
  RunSummary,
  RunView,
  StatusView,
  TreeReply,
} from '../wire';
import type { Page } from './page.svelte';

export class Run {
  readonly repo: string;
  /** Null: the current run, whichever that is. */
  readonly id: string | null;
  status = $state.raw<StatusView | null>(null);
  tree = $state.raw<TreeReply | null>(null);
  iterations = $state.raw<IterationView[] | null>(null);
  runs = $state.raw<RunSummary[] | null>(null);
  questions = $state.raw<QuestionView[] | null>(null);
  memory = $state.raw<MemoryReply | null>(null);
  config = $state.raw<ConfigShowReply | null>(null);
  error = $state.raw<Failure | null>(null);
  /** What could not be read of what is asked for on its own, by name. */
  missing = $state.raw<ReadonlyMap<string, Failure>>(new Map());
  #heard = $state.raw<Live | null>(null);
  #refresher = new Refresher<Stale | 'config'>((error) => this.#failed(error));
  #unfollow: () => void;

  constructor(
    private readonly page: Page,
    repo: string,
    id: string | null,
  ) {
    this.repo = repo;
    this.id = id;
    const { api } = page;
    const reads: [Stale, () => Promise<void>][] = [
      ['status', async () => this.#arrived(await api.status(repo, id))],
      ['tree', async () => void (this.tree = await api.tree(repo, id))],
      ['iterations', () => this.#readIterations()],
      ['runs', async () => void (this.runs = await api.runs(repo))],
    ];
    for (const [name, read] of reads) this.#refresher.knows(name, read);
    this.#refresher.need(...everything);
    this.#unfollow = page.follow((news) => this.#news(news));
  }

  /** Reads what only some sections show; from then on it is kept current. */
  want(name: 'questions' | 'memory' | 'config'): void {
    const { api } = this.page;
    const read = {
      questions: async () => void (this.questions = await api.questions(this.repo)),
      memory: async () => void (this.memory = await api.memory(this.repo, this.id)),
      config: async () => void (this.config = await api.config(this.repo)),
    }[name];
    this.#refresher.knows(name, () => read().catch((error: unknown) => this.#lacks(name, error)));
    this.#refresher.need(name);
  }

  end(): void {
    this.#unfollow();
    this.#refresher.end();
  }

  /** Whether enough is known to show it without moving what is shown already. */
  get isShown(): boolean {
    return this.status !== null && (this.iterations !== null || this.status.run === null || this.#failedOnce);
  }
  #failedOnce = $state(false);

  run: RunView | null = $derived(this.status?.run ?? null);
  /** The run's id; the current one's where none was named. */
  get name(): string | null {
    return this.id ?? this.run?.summary.id ?? null;
  }
  forest: Forest | null = $derived(this.tree ? forest(this.tree.tree.root) : null);
  spent = $derived(spent(this.iterations ?? []));
  bars = $derived(bars(this.iterations ?? []));
  live: Live | null = $derived(agree(this.#heard, liveOf(this.run)));
  /** Number of the iteration that is under way. */
  liveIter: number | null = $derived(this.live?.iter ?? null);
  now: Now = $derived.by(() => ({
    current: this.live?.node ?? this.run?.node?.id ?? this.tree?.current ?? null,
    live: this.live !== null,
    pending: pendingNodes(this.iterations ?? []),
  }));

  #arrived(status: StatusView): void {
    this.status = status;
    this.error = null;
  }

  async #readIterations(): Promise<void> {
    const known = this.iterations ?? [];
    const from = known.at(-1)?.iter;
    const fresh = await this.page.api.iterations(this.repo, this.id, from);
    if (from === undefined || this.name !== known[0]?.run) {
      this.iterations = from === undefined ? fresh : await this.page.api.iterations(this.repo, this.id);
    } else this.iterations = [...known.filter((view) => view.iter < from), ...fresh];
  }

  #news(news: News): void {
    if (news.kind === 'all') this.#refresher.need(...everything);
    if (news.kind !== 'stale' || news.repo !== this.repo) return;
    if (this.id === null || news.event.run === this.id) this.#heard = enter(this.#heard, news.event);
    this.#refresher.need(...news.what);
  }

  #failed(error: unknown): void {
    if (!(error instanceof Failure)) throw error;
    this.#failedOnce = true;
    // What is shown stays; the badge tells how old it is.
    if (this.status === null || error.code === 'not_found') this.error = error;
  }

  #lacks(name: string, error: unknown): void {
    if (!(error instanceof Failure)) throw error;
    this.missing = new Map(this.missing).set(name, error);
  }
}

/** Nodes whose last iteration waits for a person. */
function pendingNodes(iterations: readonly IterationView[]): Set<string> {
  const last = new Map<string, IterationView>();
  for (const view of iterations) last.set(view.node, view);
  return new Set([...last.values()].filter((view) => view.verdict === 'Pending').map((view) => view.node));
}
