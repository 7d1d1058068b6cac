// The patches of a run's iterations as one: each is applied to what those before it have left, line by line. The ids of a
// file's contents say whether a patch begins where the last one ended; where somebody else has changed the file between
// them, its patches stay apart.
import { compare, MOST } from './compare';
import { isBookkeeping, type DiffFile, type DiffRow } from './diff';

/** Equal lines around a difference. */
const AROUND = 3;
/** The id of a file that is not there. */
const ABSENT = /^0+$/;

/** Lines of a file: some that were there at the beginning, by their numbers, or one that was added. */
type Part = { from: number; count: number } | { text: string };

/** A file while patches are applied to it. */
class Sheet {
  #parts: Part[] = [{ from: 1, count: Infinity }];
  /** Lines of the beginning, as far as patches have shown them. */
  #known = new Map<number, string>();
  #binary: string | null = null;
  #first: string | null = null;
  #last: string | null = null;

  constructor(
    readonly path: string,
    private readonly isApart: boolean,
  ) {}

  /** Whether a patch begins with what this has become. */
  continues({ blobs }: DiffFile): boolean {
    return blobs == null || this.#last === null || this.#last === blobs[0];
  }

  apply(file: DiffFile): void {
    if (file.blobs) {
      this.#first ??= file.blobs[0];
      this.#last = file.blobs[1];
    }
    const rest = this.#parts;
    const made: Part[] = [];
    let line = 1;
    /** Takes lines before the line `end`, at most one part; null where there are none. */
    const take = (end: number): Part | null => {
      const part = rest[0];
      if (!part || line >= end) return null;
      rest.shift();
      if ('text' in part) return ((line += 1), part);
      const count = Math.min(part.count, end - line);
      if (count < part.count) rest.unshift({ from: part.from + count, count: part.count - count });
      line += count;
      return { from: part.from, count };
    };
    const copy = (end: number) => {
      for (let part = take(end); part; part = take(end)) made.push(part);
    };
    for (const row of file.rows) {
      if (row.kind === 'hunk') {
        const [, from = '1', count = '1'] = /^@@ -(\d+)(?:,(\d+))?/.exec(row.text) ?? [];
        copy(Number(from) + (count === '0' ? 1 : 0));
      } else if (row.kind === 'add') made.push({ text: row.text });
      else if (row.kind === 'note' && row.text.startsWith('Binary files ')) this.#binary = row.text;
      else if (row.old !== null) {
        copy(row.old);
        const part = take(row.old + 1);
        if (part && 'from' in part) this.#known.set(part.from, row.text);
        if (part && row.kind === 'same') made.push(part);
      }
    }
    copy(Infinity);
    this.#parts = made;
  }

  /** What has changed since the beginning; null if nothing has. */
  result(): DiffFile | null {
    const [wasAbsent, isAbsent] = [ABSENT.test(this.#first ?? ''), ABSENT.test(this.#last ?? '')];
    if (this.#first === this.#last) return null;
    const notes = [
      this.isApart ? 'changed by somebody else before this' : null,
      wasAbsent ? 'new file' : isAbsent ? 'deleted file' : null,
      this.#binary,
    ].filter((text) => text !== null);
    const rows = [
      ...notes.map((text): DiffRow => ({ kind: 'note', text, old: null, new: null })),
      ...regionsOf(this.#rows()),
    ];
    const count = (kind: string) => rows.filter((row) => row.kind === kind).length;
    return { path: this.path, added: count('add'), removed: count('del'), rows };
  }

  /** All lines that are known, and the differences among them. */
  #rows(): DiffRow[] {
    const rows: DiffRow[] = [];
    let [old, now] = [1, 1];
    let added: string[] = [];
    for (const part of this.#parts) {
      if ('text' in part) {
        added.push(part.text);
        continue;
      }
      const gone = Array.from({ length: part.from - old }, (_, at) => this.#known.get(old + at) ?? '');
      rows.push(...differences(gone, added, old, now));
      const text = part.count === 1 ? this.#known.get(part.from) : undefined;
      now += added.length;
      if (text !== undefined) rows.push({ kind: 'same', text, old: part.from, new: now });
      [old, now, added] = [part.from + part.count, now + part.count, []];
    }
    return rows;
  }
}

/** Removed and added lines; those that are in both are equal. */
function differences(gone: string[], added: string[], old: number, now: number): DiffRow[] {
  const isPlain = gone.length === 0 || added.length === 0 || gone.length + added.length > MOST;
  if (!isPlain)
    return compare(gone, added).map((row): DiffRow => ({
      kind: row.kind === 'left' ? 'note' : row.kind,
      text: row.text,
      old: row.old === null ? null : old + row.old - 1,
      new: row.new === null ? null : now + row.new - 1,
    }));
  return [
    ...gone.map((text, at): DiffRow => ({ kind: 'del', text, old: old + at, new: null })),
    ...added.map((text, at): DiffRow => ({ kind: 'add', text, old: null, new: now + at })),
  ];
}

/** Leaves out equal lines that are far from a difference; a line says where a region begins. */
function regionsOf(rows: readonly DiffRow[]): DiffRow[] {
  const near = new Set<number>();
  rows.forEach((row, at) => {
    if (row.kind === 'same') return;
    for (let by = -AROUND; by <= AROUND; by += 1) near.add(at + by);
  });
  const found: DiffRow[] = [];
  let [old, now] = [1, 1];
  rows.forEach((row, at) => {
    const isNext = near.has(at - 1) && (row.old ?? old) === old && (row.new ?? now) === now;
    if (near.has(at)) {
      const text = `@@ -${row.old ?? old} +${row.new ?? now} @@`;
      if (!isNext || at === 0) found.push({ kind: 'hunk', text, old: null, new: null });
      found.push(row);
    }
    if (row.old !== null) old = row.old + 1;
    if (row.new !== null) now = row.new + 1;
  });
  return found;
}

/** Applies patches one after the other, oldest first; the runner's own files are left out. */
export function applied(patches: readonly (readonly DiffFile[])[]): DiffFile[] {
  const open = new Map<string, Sheet>();
  const sheets: Sheet[] = [];
  for (const file of patches.flat().filter((one) => !isBookkeeping(one))) {
    const known = open.get(file.path);
    const sheet = known?.continues(file) ? known : new Sheet(file.path, known !== undefined);
    if (sheet !== known) sheets.push(sheet);
    open.set(file.path, sheet);
    sheet.apply(file);
  }
  const files = sheets.map((sheet) => sheet.result()).filter((file) => file !== null);
  return files.sort((a, b) => (a.path < b.path ? -1 : Number(a.path > b.path)));
}
