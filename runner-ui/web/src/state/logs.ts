// Looks for words in the logs of a run, the newest iteration first; bounded, and it says how far it has come.
import type { Api } from '../api';
import { bare } from '../model/ansi';
import { format } from '../route';
import type { Hit } from '../model/find';
import { wholeText } from './whole';

/** Iterations that are looked through, and lines that are told. */
const ITERATIONS = 200;
const LINES = 60;
/** Lines of one log. */
const EACH = 5;
const logs = [
  ['guard.log', 'guard'],
  ['executor.log', 'log'],
] as const;

export interface Progress {
  hits: Hit[];
  seen: number;
  of: number;
  done: boolean;
}

interface In {
  repo: string;
  run: string;
  /** Names of iterations, oldest first. */
  iters: readonly string[];
}

/** Looks; tells nothing after the returned function was called. */
export function searchLogs(
  api: Api,
  within: In,
  wanted: string,
  tell: (found: Progress) => void,
): () => void {
  const stop = new AbortController();
  void search(api, within, { words: wanted.toLowerCase(), tell, signal: stop.signal });
  return () => stop.abort();
}

interface Look {
  words: string;
  tell: (found: Progress) => void;
  signal: AbortSignal;
}

async function search(api: Api, { repo, run, iters }: In, { words, tell, signal }: Look): Promise<void> {
  const newest = iters.slice(-ITERATIONS).reverse();
  const hits: Hit[] = [];
  for (const [at, iter] of newest.entries()) {
    for (const [name, tab] of logs) {
      const lines = await wholeText(api, api.textAddress(repo, run, iter, name), signal).catch(() => []);
      if (signal.aborted) return;
      for (const [line, text] of fitting(lines, words))
        hits.push({
          kind: 'line',
          title: text.trim().slice(0, 300),
          about: `Iteration ${iter} · ${name}`,
          place: format({ repo, run, iter, tab, line }),
        });
    }
    const done = at === newest.length - 1 || hits.length >= LINES;
    tell({ hits: hits.slice(0, LINES), seen: at + 1, of: iters.length, done });
    if (done) return;
  }
  tell({ hits, seen: 0, of: 0, done: true });
}

function fitting(lines: readonly string[], words: string): [line: number, text: string][] {
  const found: [number, string][] = [];
  for (let at = 0; at < lines.length && found.length < EACH; at += 1) {
    const text = bare(lines[at] ?? '');
    if (text.toLowerCase().includes(words)) found.push([at + 1, text]);
  }
  return found;
}
