// The server's stream of events over `fetch`: an own reader, so that a stream that was cut goes on where it ended and the
// page knows at any time how it stands with it.

/** One event of the stream. */
export interface Message {
  id: string | null;
  event: string;
  data: string;
}

/** How it stands with the stream. */
export type Link = 'connecting' | 'live' | 'reconnecting' | 'offline';

/** Most characters of an event that has not ended; a stream that goes beyond is begun anew. */
const LONGEST = 4 * 1024 * 1024;

/** Puts events together from pieces of text. */
export class Reader {
  #rest = '';
  #id: string | null = null;
  #event = '';
  #data: string[] = [];

  /** Takes a piece of the stream and returns the events that it completes. */
  take(text: string): Message[] {
    const lines = (this.#rest + text).split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop() ?? '';
    if (this.#rest.length > LONGEST) throw new Error('an event is too long');
    return lines.flatMap((line) => this.#line(line));
  }

  #line(line: string): Message[] {
    if (line === '') return this.#dispatch();
    const colon = line.indexOf(':');
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'id') this.#id = value;
    else if (field === 'event') this.#event = value;
    else if (field === 'data') this.#data.push(value);
    return [];
  }

  #dispatch(): Message[] {
    const message = { id: this.#id, event: this.#event || 'message', data: this.#data.join('\n') };
    const empty = this.#data.length === 0 && this.#event === '';
    this.#event = '';
    this.#data = [];
    return empty ? [] : [message];
  }
}

/** Milliseconds before try number `n`, the first being 0: half a second, doubled, at most ten seconds. */
export function pause(tries: number): number {
  return Math.min(500 * 2 ** Math.min(tries, 10), 10_000);
}

/** What a stream tells. */
export interface Ears {
  message(message: Message): void;
  link(link: Link): void;
}

/** Silence after which a stream counts as dead; the server says something every 15 seconds. */
const SILENCE = 40_000;
/** Tries without success after which the page says that it is offline. */
const PATIENCE = 3;

/** The stream of events, through every interruption: it goes on behind the last event that was heard. */
export class Stream {
  #last: string | null = null;
  #stopped = false;
  #connection = new AbortController();
  #url: string | null = null;
  #runs = false;

  constructor(
    private readonly ears: Ears,
    private readonly fetcher: typeof fetch = (input, init) => fetch(input, init),
  ) {}

  /** Listens at an address, in the place of the one before; at none while it is null. */
  listen(url: string | null): void {
    if (url === this.#url || this.#stopped) return;
    this.#url = url;
    this.#connection.abort();
    if (!this.#runs && url !== null) void this.#run();
  }

  /** Takes note of what was heard elsewhere: a stream that begins here goes on behind it. */
  heard(message: Message): void {
    this.#last = message.id ?? this.#last;
  }

  /** Ends it for good. */
  stop(): void {
    this.#stopped = true;
    this.#url = null;
    this.#connection.abort();
  }

  async #run(): Promise<void> {
    let tries = 0;
    this.#runs = true;
    this.ears.link('connecting');
    while (this.#url !== null) {
      const url = this.#url;
      this.#connection = new AbortController();
      const signal = this.#connection.signal;
      await this.#once(url, signal, () => (tries = 0)).catch(() => undefined);
      // Another address is not an interruption.
      if (signal.aborted) continue;
      this.ears.link(tries >= PATIENCE ? 'offline' : 'reconnecting');
      await delay(pause(tries), signal);
      tries += 1;
    }
    this.#runs = false;
  }

  /** One connection, from its beginning to its end. */
  async #once(url: string, signal: AbortSignal, began: () => void): Promise<void> {
    const silence = new AbortController();
    const both = AbortSignal.any([signal, silence.signal]);
    let timer = setTimeout(() => silence.abort(), SILENCE);
    const headers: Record<string, string> = { Accept: 'text/event-stream' };
    if (this.#last !== null) headers['Last-Event-ID'] = this.#last;
    try {
      const response = await this.fetcher(url, { headers, signal: both, cache: 'no-store' });
      if (!response.ok || !response.body) throw new Error(`events: ${response.status}`);
      began();
      this.ears.link('live');
      const reader = new Reader();
      const decoder = new TextDecoder();
      for await (const bytes of chunks(response.body)) {
        clearTimeout(timer);
        timer = setTimeout(() => silence.abort(), SILENCE);
        for (const message of reader.take(decoder.decode(bytes, { stream: true }))) {
          this.#last = message.id ?? this.#last;
          this.ears.message(message);
        }
      }
    } finally {
      clearTimeout(timer);
    }
  }
}

async function* chunks(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    reader.releaseLock();
  }
}

function delay(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => (clearTimeout(timer), resolve()), { once: true });
  });
}
