// One stream of events for all tabs of a server: browsers have six connections for all of them. Whoever holds the lock
// listens and tells the others; a tab that is not seen neither listens nor is told, and catches up when it is seen again.
import { BASE } from './base';
import { Stream, type Ears, type Link, type Message } from './events';

/** What tabs say to each other. */
type Told =
  | { kind: 'message'; message: Message }
  | { kind: 'link'; link: Link }
  | { kind: 'wants'; tab: string; output: boolean }
  /** Who listens asks what is wanted; who begins to follow asks how it stands. */
  | { kind: 'who' };

/** What of the browser is used. */
export interface Surroundings {
  /** Missing where the page has no secure origin: each tab listens on its own then. */
  locks: Pick<LockManager, 'request'> | null;
  channel: Pick<BroadcastChannel, 'postMessage' | 'onmessage'>;
  fetcher?: typeof fetch;
}

/** Each machine has a stream of its own. */
const LOCK = `runner-events${BASE}`;

export function ofBrowser(): Surroundings {
  return { locks: navigator.locks ?? null, channel: new BroadcastChannel(LOCK) };
}

/** The stream, as one tab has it. */
export class SharedStream {
  readonly #tab = crypto.randomUUID();
  #stream: Stream;
  #active = false;
  #leads = false;
  #wasActive = false;
  #output = false;
  #others = new Set<string>();
  #leave: (() => void) | null = null;

  constructor(
    private readonly ears: Ears,
    private readonly around: Surroundings,
  ) {
    const tell = {
      message: (message: Message) => {
        ears.message(message);
        this.#tell({ kind: 'message', message });
      },
      link: (link: Link) => {
        this.#link = link;
        ears.link(link);
        this.#tell({ kind: 'link', link });
      },
    };
    this.#stream = around.fetcher ? new Stream(tell, around.fetcher) : new Stream(tell);
    around.channel.onmessage = (event: MessageEvent<Told>) => this.#told(event.data);
  }

  #link: Link = 'connecting';

  /** Begins to follow, with or without what agents print; changes that where it follows already. */
  follow(output: boolean): void {
    this.#output = output;
    if (this.#active) {
      this.#wants(output);
      return this.#listen();
    }
    this.#active = true;
    this.#wants(output);
    this.ears.link('connecting');
    // What happened meanwhile is not told again.
    if (this.#wasActive) this.ears.message({ id: null, event: 'resync', data: '{}' });
    this.#wasActive = true;
    void this.#stand();
    this.#tell({ kind: 'who' });
  }

  /** Stops to follow; another tab may listen. */
  rest(): void {
    this.#active = false;
    this.#wants(false);
    this.#leave?.();
    this.#leave = null;
  }

  /** Waits to be the one that listens. */
  async #stand(): Promise<void> {
    const gone = new AbortController();
    let release: () => void = () => undefined;
    const over = new Promise<void>((resolve) => (release = resolve));
    this.#leave = () => {
      gone.abort();
      release();
    };
    const lead = async () => {
      if (gone.signal.aborted) return;
      this.#leads = true;
      this.#others.clear();
      this.#tell({ kind: 'who' });
      this.#listen();
      await over;
      this.#leads = false;
      this.#stream.listen(null);
    };
    const { locks } = this.around;
    if (!locks) return lead();
    // A wait that was given up is no error.
    await locks.request(LOCK, { signal: gone.signal }, lead).catch((error: unknown) => {
      if (!gone.signal.aborted) throw error;
    });
  }

  #listen(): void {
    if (!this.#leads) return;
    const output = this.#output || this.#others.size > 0;
    this.#stream.listen(`${BASE}/events${output ? '?output=1' : ''}`);
  }

  #wants(output: boolean): void {
    this.#tell({ kind: 'wants', tab: this.#tab, output });
  }

  #tell(told: Told): void {
    this.around.channel.postMessage(told);
  }

  #told(told: Told): void {
    if (told.kind === 'wants') {
      if (told.output) this.#others.add(told.tab);
      else this.#others.delete(told.tab);
      return this.#listen();
    }
    if (!this.#active) return;
    if (told.kind === 'who') {
      if (this.#leads) this.#tell({ kind: 'link', link: this.#link });
      return this.#wants(this.#output);
    }
    if (this.#leads) return;
    if (told.kind === 'link') return this.ears.link(told.link);
    this.#stream.heard(told.message);
    this.ears.message(told.message);
  }
}
