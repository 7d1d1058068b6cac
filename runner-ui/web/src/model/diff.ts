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
}

/** Most rows of a diff that are shown. */
export const MOST_ROWS = 50_000;

export function parseDiff(text: string): { files: DiffFile[]; left: number } {
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
      file = { path: pathOf(line), added: 0, removed: 0, rows: [] };
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
    } else if (!/^(index|---|\+\+\+) /.test(line)) {
      file.rows.push({ kind: 'note', text: line, old: null, new: null });
    }
  }
  return { files, left: Math.max(lines.length - shown, 0) };
}

/** The work of a difference, and how many lines it adds and removes. */
export function workOf(files: readonly DiffFile[]): { files: DiffFile[]; added: number; removed: number } {
  const work = files.filter((file) => !isBookkeeping(file));
  const sum = (count: (file: DiffFile) => number) => work.reduce((all, file) => all + count(file), 0);
  return { files: work, added: sum((file) => file.added), removed: sum((file) => file.removed) };
}

/** A line of what is shown: the head of a file, or a row. */
export type DiffLine =
  | { key: string; file: DiffFile; at: number; folded: boolean }
  | { key: string; row: Omit<DiffRow, 'kind'> & { kind: string } };

/** Files with their rows below them, as far as they are not folded. */
export function linesOfFiles(files: readonly DiffFile[], isFolded: (at: number) => boolean): DiffLine[] {
  return files.flatMap((file, at): DiffLine[] => {
    const folded = isFolded(at);
    const head = { key: `${at}`, file, at, folded };
    return folded ? [head] : [head, ...linesOfRows(file.rows, `${at}/`)];
  });
}

/** Rows as lines. */
export function linesOfRows(
  rows: readonly (Omit<DiffRow, 'kind'> & { kind: string })[],
  within = '',
): DiffLine[] {
  return rows.map((row, place) => ({ key: `${within}${place}`, row }));
}

/** Whether a file is the runner's own: its tree, its state, its records. */
export function isBookkeeping(file: DiffFile): boolean {
  return file.path.startsWith('.runner/');
}

/** The work first, the runner's bookkeeping last. */
export function inReadingOrder(files: readonly DiffFile[]): DiffFile[] {
  return [...files.filter((file) => !isBookkeeping(file)), ...files.filter(isBookkeeping)];
}

function pathOf(line: string): string {
  const quoted = / "?b\/(.*?)"?$/.exec(line);
  return quoted?.[1] ?? line.replace(/^diff (--git )?/, '');
}
