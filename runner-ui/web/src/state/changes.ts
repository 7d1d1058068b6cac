// What the iterations of a run have changed, read one by one and put together; bounded, and it says what is not in it.
import type { Api } from '../api';
import { parseDiff, type DiffFile } from '../model/diff';
import { applied } from '../model/patches';
import { wholeText } from './whole';

/** Iterations whose changes are read. */
const MOST = 200;
/** Requests at a time. */
const AT_ONCE = 4;
/** Characters of a diff beyond which its record may have been cut. */
const FULL = 1_000_000;

export interface Whole {
  files: DiffFile[];
  /** How many iterations were read, and of how many. */
  seen: number;
  of: number;
  /** What is not in it, in sentences. */
  lacks: string[];
}

type Patch = { files: DiffFile[]; lack: 'missing' | 'incomplete' | null };

async function read(api: Api, address: string, signal: AbortSignal): Promise<Patch> {
  const lines = await wholeText(api, address, signal);
  const text = lines.join('\n');
  const { files, isCut } = parseDiff(text);
  const isShort = isCut || text.length > FULL || /bytes are left out of this file\]$/.test(text);
  return { files, lack: lines.length === 0 ? 'missing' : isShort ? 'incomplete' : null };
}

/** Reads the changes of a run; keeps those that it has read, so that later ones are read alone. */
export class PatchReader {
  #known = new Map<string, Patch>();

  constructor(
    private readonly api: Api,
    private readonly addressOf: (iter: string) => string,
  ) {}

  /** Reads iterations with commits, oldest first; tells nothing after the signal. */
  async read(iters: readonly string[], signal: AbortSignal, tell: (whole: Whole) => void): Promise<void> {
    const wanted = iters.slice(-MOST);
    const left = wanted.filter((iter) => !this.#known.has(iter));
    for (let at = 0; at < left.length; at += AT_ONCE) {
      const some = left.slice(at, at + AT_ONCE);
      const patches = await Promise.all(some.map((iter) => read(this.api, this.addressOf(iter), signal)));
      if (signal.aborted) return;
      some.forEach((iter, place) => this.#known.set(iter, patches[place]!));
      const seen = wanted.length - left.length + at + some.length;
      if (seen < wanted.length) tell({ files: [], seen, of: wanted.length, lacks: [] });
    }
    tell(this.#whole(wanted, iters.length - wanted.length));
  }

  #whole(iters: readonly string[], older: number): Whole {
    const patches = iters.map((iter) => this.#known.get(iter)!);
    const those = (lack: Patch['lack']) => iters.filter((_, at) => patches[at]!.lack === lack);
    const lacks = [
      older > 0 ? `The first ${older} iterations are not in this.` : '',
      ...(['missing', 'incomplete'] as const).map((lack) =>
        those(lack).length > 0 ? `The diff is ${lack} for iteration ${those(lack).join(', ')}.` : '',
      ),
    ].filter(Boolean);
    return {
      files: applied(patches.map(({ files }) => files)),
      seen: iters.length,
      of: iters.length,
      lacks,
    };
  }
}
