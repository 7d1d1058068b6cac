// The server's requests. Replies are the protocol's own types; an error says what to type.
import { BASE } from './base';
import type {
  ActivityReply,
  Command,
  ConfigShowReply,
  Health,
  IterationReply,
  IterationView,
  MemoryReply,
  QuestionView,
  RunSummary,
  Session,
  StatusView,
  Steer,
  Steered,
  TreeReply,
} from './wire';

/** A request that was answered with an error, or not at all. */
export class Failure extends Error {
  constructor(
    readonly code: string,
    message: string,
    readonly hint: string | null = null,
    readonly asOf: string | null = null,
    readonly commands: readonly Command[] = [],
  ) {
    super(message);
  }
}

/** A part of a text. */
export interface Part {
  bytes: Uint8Array;
  /** Size of the whole in bytes, as far as it is written. */
  size: number;
  /** Whether nobody writes any more. */
  complete: boolean;
}

/** A file of an iteration's record. */
export type TextName =
  | 'prompt'
  | 'executor.log'
  | 'guard.log'
  | 'guard-accepted.log'
  | 'guard-rerun.log'
  | 'reviewer.log'
  | 'output'
  | 'review'
  | 'diff'
  | 'events';

type Fetcher = typeof fetch;

/** Milliseconds for an answer; a page that waits for ever looks as if nothing had happened. */
const WITHIN = 20_000;

const OPEN_AGAIN: Command = { label: 'Open the page', argv: ['runnerctl', 'ui'] };
const UNREACHABLE = new Failure('unreachable', 'cannot reach the web view', 'runnerctl ui', null, [
  OPEN_AGAIN,
]);
const BROKEN = new Failure('broken', 'the answer of the web view broke off');
const LATE = new Failure('late', `the web view has not answered within ${WITHIN / 1000} seconds`);

async function ask(path: string, init: RequestInit, fetcher: Fetcher): Promise<Response> {
  const late = AbortSignal.timeout(WITHIN);
  const signal = init.signal ? AbortSignal.any([init.signal, late]) : late;
  const response = await fetcher(path, { cache: 'no-store', ...init, signal }).catch((error: unknown) => {
    if (init.signal?.aborted) throw error;
    throw late.aborted ? LATE : UNREACHABLE;
  });
  if (response.ok || response.status === 416) return response;
  throw await failure(response);
}

async function failure(response: Response): Promise<Failure> {
  const body = (await response.json().catch(() => null)) as {
    error?: {
      code?: string;
      message?: string;
      hint?: string | null;
      as_of?: string | null;
      commands?: Command[];
    };
  } | null;
  const error = body?.error;
  return new Failure(
    error?.code ?? String(response.status),
    error?.message ?? `the view answered ${response.status}`,
    error?.hint ?? null,
    error?.as_of ?? null,
    error?.commands ?? [],
  );
}

/** The requests to one server. */
export class Api {
  constructor(
    private readonly fetcher: Fetcher = (input, init) => fetch(input, init),
    /** Whether a browser can open the addresses of texts by itself. */
    readonly opens = true,
    /** The part of its paths that names the machine. */
    private readonly base = BASE,
  ) {}

  /** Trades the token for a cookie. */
  session(token: string): Promise<Session> {
    return this.#get('session', undefined, { Authorization: `Bearer ${token}` });
  }

  health = () => this.#get<Health>('health');
  repos = () => this.#get<StatusView[]>('repos');
  status = (repo: string, run?: string | null) => this.#of<StatusView>(repo, 'run-state', { run });
  tree = (repo: string, run?: string | null) => this.#of<TreeReply>(repo, 'tree', { run });
  runs = (repo: string) => this.#of<RunSummary[]>(repo, 'runs');
  config = (repo: string) => this.#of<ConfigShowReply>(repo, 'config');
  memory = (repo: string, run?: string | null) => this.#of<MemoryReply>(repo, 'memory', { run });
  questions = (repo: string) => this.#of<QuestionView[]>(repo, 'questions');
  iterations = (repo: string, run?: string | null, from?: number) =>
    this.#of<IterationView[]>(repo, 'iterations', { run, from });
  iteration = (repo: string, run: string, iter: string) =>
    this.#of<IterationReply>(repo, `iterations/${encodeURIComponent(run)}/${iter}`);
  activity = (repo: string, run: string, iter: string, from?: number) =>
    this.#of<ActivityReply>(repo, `iterations/${encodeURIComponent(run)}/${iter}/activity`, { from });

  /** Has something done to a run; the token shows that this page may. */
  async steer({ repo, run }: { repo: string; run: string }, order: Steer, token: string): Promise<Steered> {
    const path = `${this.base}/api/repos/${encodeURIComponent(repo)}/steer?${new URLSearchParams({ run })}`;
    const headers = { 'Content-Type': 'application/json', 'X-Runner-Steer': token };
    const response = await ask(path, { method: 'POST', headers, body: JSON.stringify(order) }, this.fetcher);
    return (await response.json().catch(() => {
      throw BROKEN;
    })) as Steered;
  }

  /** Address of a text, for a link to it as it is. */
  textAddress(repo: string, run: string, iter: string, name: TextName): string {
    return `${this.base}/api/repos/${encodeURIComponent(repo)}/iterations/${encodeURIComponent(run)}/${iter}/${name}`;
  }

  /** Reads the bytes of a text from `from` on, at most up to `to`; none where there are none yet. */
  async part(address: string, from: number, to: number, signal?: AbortSignal): Promise<Part> {
    const init: RequestInit = {
      headers: { Range: `bytes=${from}-${to - 1}` },
      ...(signal ? { signal } : {}),
    };
    const response = await ask(address, init, this.fetcher);
    const empty = response.status === 416;
    const bytes = empty ? new Uint8Array() : new Uint8Array(await response.arrayBuffer());
    return { bytes, ...extent(response.headers, from + bytes.length) };
  }

  #of<T>(repo: string, what: string, query?: Query): Promise<T> {
    return this.#get<T>(`repos/${encodeURIComponent(repo)}/${what}`, query);
  }

  async #get<T>(path: string, query?: Query, headers?: Record<string, string>): Promise<T> {
    const given = Object.entries(query ?? {}).filter(([, value]) => value != null);
    const tail =
      given.length === 0 ? '' : `?${new URLSearchParams(given.map(([key, value]) => [key, String(value)]))}`;
    const response = await ask(`${this.base}/api/${path}${tail}`, headers ? { headers } : {}, this.fetcher);
    return (await response.json().catch(() => {
      throw BROKEN;
    })) as T;
  }
}

type Query = Record<string, string | number | null | undefined>;

function extent(headers: Headers, read: number): { size: number; complete: boolean } {
  const told = headers.get('X-Runner-Size') ?? /\/(\d+)$/.exec(headers.get('Content-Range') ?? '')?.[1];
  return { size: told == null ? read : Number(told), complete: headers.get('X-Runner-Complete') !== 'false' };
}
