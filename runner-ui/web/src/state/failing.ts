// What failed in the guard of an iteration: what the runner has recognised in its log, else the end of that.
import type { Api } from '../api';
import { toldOf } from '../model/failing';
import type { IterationReply } from '../wire';

/** Most lines that are told. */
const MOST = 20;
/** Bytes at the end of a log in which nothing was recognised. */
const END = 8 * 1024;

interface At {
  repo: string;
  run: string;
  iter: string;
}

/** A place, from the run and the iteration in one text. */
export function atOf(repo: string, red: string): At {
  const [run = '', iter = ''] = red.split('\n');
  return { repo, run, iter };
}

/** The lines of what was recognised, failure after failure. */
export function linesOf(reply: Pick<IterationReply, 'failures'>): string[] {
  return (reply.failures ?? []).flatMap(toldOf).slice(0, MOST);
}

/** Reads them; tells nothing after the returned function was called. */
export function readFailing(api: Api, at: At, tell: (lines: string[]) => void): () => void {
  const stop = new AbortController();
  void read(api, at, stop.signal)
    .catch(() => [])
    .then((lines) => {
      if (!stop.signal.aborted) tell(lines);
    });
  return () => stop.abort();
}

async function read(api: Api, { repo, run, iter }: At, signal: AbortSignal): Promise<string[]> {
  const told = linesOf(await api.iteration(repo, run, iter));
  if (told.length > 0) return told;
  const address = api.textAddress(repo, run, iter, 'guard.log');
  const { size } = await api.part(address, 0, 1, signal);
  const from = Math.max(size - END, 0);
  const { bytes } = await api.part(address, from, size, signal);
  const lines = new TextDecoder()
    .decode(bytes)
    .split('\n')
    .slice(from > 0 ? 1 : 0);
  return toldOf({ name: '', lines: lines.filter((line) => line.trim() !== '').slice(-MOST) });
}
