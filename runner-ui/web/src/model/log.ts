// A log that is read in pieces and kept within bounds: whole lines, the newest of them, with the number of each.

/** Most lines kept; beyond it the oldest go and are counted. */
export const MOST_LINES = 200_000;
/** Most characters kept. */
export const MOST_CHARS = 24_000_000;
/** Characters of a line that are kept; what is beyond is counted. */
export const LONGEST_LINE = 20_000;

/** The lines of a text, as far as they were read. */
export class Lines {
  /** Whole lines, and at the end the one that may go on. */
  list: string[] = [];
  /** Number of the first line that is kept, from 1. */
  first = 1;
  #chars = 0;
  #open = false;
  #decoder = new TextDecoder();

  /** Takes the next bytes. */
  take(bytes: Uint8Array, last: boolean): void {
    this.add(this.#decoder.decode(bytes, { stream: !last }));
  }

  /** Takes the next text. */
  add(text: string): void {
    if (text === '') return;
    const parts = text.split('\n');
    if (this.#open) this.#extend(parts.shift() ?? '');
    for (const part of parts) this.#push(part);
    // What follows the last line break is the line that may go on.
    this.#open = true;
    this.#bound();
  }

  /** How many lines there are; an empty one at the end is none. */
  get count(): number {
    return this.list.at(-1) === '' ? this.list.length - 1 : this.list.length;
  }

  #extend(part: string): void {
    const line = this.list.length - 1;
    const before = this.list[line] ?? '';
    this.list[line] = clip(before + part);
    this.#chars += this.list[line].length - before.length;
  }

  #push(part: string): void {
    const line = clip(part);
    this.list.push(line);
    this.#chars += line.length;
  }

  #bound(): void {
    let drop = Math.max(this.list.length - MOST_LINES, 0);
    for (let at = 0; at < drop; at += 1) this.#chars -= this.list[at]?.length ?? 0;
    while (this.#chars > MOST_CHARS && drop < this.list.length - 1)
      this.#chars -= this.list[drop++]?.length ?? 0;
    if (drop === 0) return;
    this.list.splice(0, drop);
    this.first += drop;
  }
}

const clip = (line: string) => (line.length > LONGEST_LINE ? `${line.slice(0, LONGEST_LINE)} …` : line);

const bad = /\b(error|errors|fail(ed|ure|ures|s)?|panic(ked)?|fatal|exception|traceback|not ok)\b|✖|✗|✘/i;
const harmless = /\b(0|no) (errors?|failures?|failed)\b|\b(errors?|failures?|failed)[:=] ?0\b/i;

/** Whether a line seems to tell of a failure. */
export function isError(line: string): boolean {
  return bad.test(line) && !harmless.test(line);
}

/** Which lines are shown: their places in the list. Null: all of them. */
export function sift(lines: readonly string[], search: string, errorsOnly: boolean): number[] | null {
  const wanted = search.trim().toLowerCase();
  if (wanted === '' && !errorsOnly) return null;
  const found: number[] = [];
  lines.forEach((line, at) => {
    if (wanted !== '' && !line.toLowerCase().includes(wanted)) return;
    if (errorsOnly && !isError(line)) return;
    found.push(at);
  });
  return found;
}

/** Places of the lines that tell of failures: those that were recognised where there are any, else those that read so. */
export function errorsOf(lines: readonly string[], recognised: readonly string[]): number[] {
  const known = new Set(recognised.map((line) => line.trim()).filter((line) => line !== ''));
  const places = (is: (line: string) => boolean) => lines.flatMap((line, at) => (is(line) ? [at] : []));
  const told = known.size === 0 ? [] : places((line) => known.has(line.trim()));
  return told.length > 0 ? told : places(isError);
}
