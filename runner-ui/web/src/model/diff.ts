// A diff as files with rows that know the numbers of their lines; for reading, nothing is applied from it.

export type RowKind = 'add' | 'del' | 'same' | 'hunk' | 'note';

export interface DiffRow {
  kind: RowKind;
  text: string;
  old: number | null;
  new: number | null;
}

export interface DiffFile {
  path: string;
  added: number;
  removed: number;
  rows: DiffRow[];
  /** Ids of the contents before and after, zeros where there is no file; null if the diff does not say. */
  blobs?: [old: string, now: string] | null;
}

/** Most rows of a diff that are shown. */
export const MOST_ROWS = 50_000;

/** Reads a diff; `left` lines are beyond what is shown, and `isCut` says that it ends within a file. */
export function parseDiff(text: string): { files: DiffFile[]; left: number; isCut: boolean } {
  const files: DiffFile[] = [];
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  let file: DiffFile | null = null;
  let [oldLine, newLine] = [0, 0];
  let [oldLeft, newLeft] = [0, 0];
  let shown = 0;
  for (const line of lines) {
    if (shown >= MOST_ROWS) break;
    shown += 1;
    const inHunk = oldLeft > 0 || newLeft > 0;
    if (!inHunk && line.startsWith('diff ')) {
      file = { path: pathOf(line), added: 0, removed: 0, rows: [], blobs: null };
      files.push(file);
      continue;
    }
    file ??= (files.push({ path: '', added: 0, removed: 0, rows: [] }), files[0]!);
    const hunk = inHunk ? null : /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/.exec(line);
    if (hunk) {
      [oldLine, newLine] = [Number(hunk[1]), Number(hunk[3])];
      [oldLeft, newLeft] = [Number(hunk[2] ?? 1), Number(hunk[4] ?? 1)];
      file.rows.push({ kind: 'hunk', text: line, old: null, new: null });
    } else if (inHunk && line.startsWith('+')) {
      file.rows.push({ kind: 'add', text: line.slice(1), old: null, new: newLine++ });
      file.added += 1;
      newLeft -= 1;
    } else if (inHunk && line.startsWith('-')) {
      file.rows.push({ kind: 'del', text: line.slice(1), old: oldLine++, new: null });
      file.removed += 1;
      oldLeft -= 1;
    } else if (inHunk && !line.startsWith('\\')) {
      file.rows.push({ kind: 'same', text: line.slice(1), old: oldLine++, new: newLine++ });
      oldLeft -= 1;
      newLeft -= 1;
    } else if (/^index /.test(line)) {
      const ids = /^index ([0-9a-f]+)\.\.([0-9a-f]+)/.exec(line);
      if (ids) file.blobs = [ids[1]!, ids[2]!];
    } else if (!/^(---|\+\+\+) /.test(line)) {
      file.rows.push({ kind: 'note', text: line, old: null, new: null });
    }
  }
  const left = Math.max(lines.length - shown, 0);
  return { files, left, isCut: left > 0 || oldLeft > 0 || newLeft > 0 };
}

/** The work of a difference, and how many lines it adds and removes. */
export function workOf(files: readonly DiffFile[]): { files: DiffFile[]; added: number; removed: number } {
  const work = files.filter((file) => !isBookkeeping(file));
  const sum = (count: (file: DiffFile) => number) => work.reduce((all, file) => all + count(file), 0);
  return { files: work, added: sum((file) => file.added), removed: sum((file) => file.removed) };
}

/** Two rows side by side; null where one side has none. */
export interface DiffPair {
  old: DiffRow | null;
  new: DiffRow | null;
}

/** A line of what is shown: the head of a file, a row, or two rows side by side. */
export type DiffLine =
  | { key: string; file: DiffFile; at: number; folded: boolean }
  | { key: string; row: DiffRow }
  | { key: string; pair: DiffPair };

/** Files with their rows below them, as far as they are not folded. */
export function linesOfFiles(
  files: readonly DiffFile[],
  isFolded: (at: number) => boolean,
  isSplit: boolean,
): DiffLine[] {
  return files.flatMap((file, at): DiffLine[] => {
    const folded = isFolded(at);
    const head = { key: `${at}`, file, at, folded };
    const rows = isSplit ? paired(file.rows) : file.rows.map((row) => ({ row }));
    return folded ? [head] : [head, ...rows.map((row, place) => ({ key: `${at}/${place}`, ...row }))];
  });
}

/** Puts removed rows beside the added rows that follow them; what is about both sides takes the whole line. */
export function paired(rows: readonly DiffRow[]): ({ row: DiffRow } | { pair: DiffPair })[] {
  const found: ({ row: DiffRow } | { pair: DiffPair })[] = [];
  for (let at = 0; at < rows.length;) {
    const row = rows[at]!;
    if (row.kind !== 'del' && row.kind !== 'add') {
      found.push(row.kind === 'same' ? { pair: { old: row, new: row } } : { row });
      at += 1;
      continue;
    }
    const [dels, adds]: [DiffRow[], DiffRow[]] = [[], []];
    for (; rows[at]?.kind === 'del'; at += 1) dels.push(rows[at]!);
    for (; rows[at]?.kind === 'add'; at += 1) adds.push(rows[at]!);
    for (let line = 0; line < Math.max(dels.length, adds.length); line += 1)
      found.push({ pair: { old: dels[line] ?? null, new: adds[line] ?? null } });
  }
  return found;
}

/** Whether a file is the runner's own: its tree, its state, its records. */
export function isBookkeeping(file: DiffFile): boolean {
  return file.path.startsWith('.runner/');
}

function pathOf(line: string): string {
  const quoted = / "?b\/(.*?)"?$/.exec(line);
  return quoted?.[1] ?? line.replace(/^diff (--git )?/, '');
}
