// Two texts line by line: what is only in the first, only in the second, and in both. For reading, like a diff.

import { parseDiff, workOf, type DiffFile, type DiffRow } from './diff';

export interface Compared {
  kind: 'same' | 'del' | 'add' | 'left';
  text: string;
  /** Numbers of the line in either text, from 1. */
  old: number | null;
  new: number | null;
}

/** Lines of a text that are compared. */
export const MOST = 20_000;
/** Differences beyond which what lies between the equal ends is told as another text. */
const MOST_DIFFERENCES = 800;
/** Equal lines around a difference. */
const AROUND = 3;

/** Compares texts. Numbers that change from run to run, like times, count as they are. */
export function compare(before: readonly string[], after: readonly string[]): Compared[] {
  const [a, b] = [before.slice(0, MOST), after.slice(0, MOST)];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end])
    end += 1;
  const rows: Compared[] = [];
  const same = (old: number, now: number) =>
    rows.push({ kind: 'same', text: a[old]!, old: old + 1, new: now + 1 });
  for (let at = 0; at < start; at += 1) same(at, at);
  const [oldEnd, newEnd] = [a.length - end, b.length - end];
  let [old, now] = [start, start];
  for (const [x, y] of [
    ...matches(a.slice(start, oldEnd), b.slice(start, newEnd)),
    [oldEnd - start, newEnd - start],
  ]) {
    while (old < start + x!) rows.push({ kind: 'del', text: a[old]!, old: ++old, new: null });
    while (now < start + y!) rows.push({ kind: 'add', text: b[now]!, old: null, new: ++now });
    if (old < oldEnd && now < newEnd) same(old++, now++);
  }
  for (let at = 0; at < end; at += 1) same(oldEnd + at, newEnd + at);
  return rows;
}

/** Pairs of lines that stay, by Myers: the fewest differences; none where there are too many. */
function matches(a: readonly string[], b: readonly string[]): [number, number][] {
  const most = Math.min(a.length + b.length, MOST_DIFFERENCES);
  const reach = new Map<number, number>([[1, 0]]);
  const history: Map<number, number>[] = [];
  for (let d = 0; d <= most; d += 1) {
    history.push(new Map(reach));
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && (reach.get(k - 1) ?? -1) < (reach.get(k + 1) ?? -1));
      let x = down ? (reach.get(k + 1) ?? 0) : (reach.get(k - 1) ?? 0) + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x += 1;
      reach.set(k, x);
      if (x >= a.length && x - k >= b.length) return walk(history, a.length, b.length);
    }
  }
  return [];
}

/** Goes the way of the fewest differences back, and tells the lines that are equal on it. */
function walk(history: readonly Map<number, number>[], width: number, height: number): [number, number][] {
  const found: [number, number][] = [];
  let [x, y] = [width, height];
  for (let d = history.length - 1; d >= 0; d -= 1) {
    const reach = history[d]!;
    const k = x - y;
    const down = k === -d || (k !== d && (reach.get(k - 1) ?? -1) < (reach.get(k + 1) ?? -1));
    const from = down ? k + 1 : k - 1;
    const [fromX, fromY] = d === 0 ? [0, 0] : [reach.get(from) ?? 0, (reach.get(from) ?? 0) - from];
    while (x > fromX && y > fromY && x > 0 && y > 0 && (down ? x > fromX : x > fromX + 1)) {
      found.push([x - 1, y - 1]);
      x -= 1;
      y -= 1;
    }
    [x, y] = [fromX, fromY];
  }
  return found.reverse();
}

/** Leaves out equal lines that are far from any difference, and says how many. */
export function shortened(rows: readonly Compared[]): Compared[] {
  const near = new Set<number>();
  rows.forEach((row, at) => {
    if (row.kind === 'same') return;
    for (let by = -AROUND; by <= AROUND; by += 1) near.add(at + by);
  });
  const found: Compared[] = [];
  let left = 0;
  const tell = () => {
    if (left > 0)
      found.push({
        kind: 'left',
        text: `${left} equal ${left === 1 ? 'line' : 'lines'}`,
        old: null,
        new: null,
      });
    left = 0;
  };
  rows.forEach((row, at) => {
    if (!near.has(at)) return void (left += 1);
    tell();
    found.push(row);
  });
  tell();
  return found;
}

/** Texts as one file that differs; none where they are the same. */
export function comparedTexts(path: string, before: readonly string[], after: readonly string[]): DiffFile[] {
  const rows = compare(before, after);
  const count = (kind: Compared['kind']) => rows.filter((row) => row.kind === kind).length;
  const [added, removed] = [count('add'), count('del')];
  if (added + removed === 0) return [];
  const shown = shortened(rows).map((row): DiffRow => ({
    ...row,
    kind: row.kind === 'left' ? 'note' : row.kind,
  }));
  return [{ path, added, removed, rows: shown }];
}

/** What two diffs change otherwise, file by file, without the places of the lines. */
export function comparedDiffs(before: string, after: string): DiffFile[] {
  const filesOf = (text: string) =>
    new Map(workOf(parseDiff(text).files).files.map((file) => [file.path, linesOf(file)]));
  const [old, now] = [filesOf(before), filesOf(after)];
  const paths = [...new Set([...old.keys(), ...now.keys()])].sort();
  return paths.flatMap((path) => comparedTexts(path, old.get(path) ?? [], now.get(path) ?? []));
}

const signs: Record<DiffRow['kind'], string> = { add: '+', del: '−', same: ' ', hunk: '', note: '' };

const linesOf = (file: DiffFile): string[] =>
  file.rows.filter(({ kind }) => kind !== 'hunk').map(({ kind, text }) => signs[kind] + text);
