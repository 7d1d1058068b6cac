import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parseDiff, type DiffFile } from './diff';
import { applied } from './patches';

let folder: string;
const git = (...args: string[]) =>
  execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@localhost', ...args], {
    cwd: folder,
    encoding: 'utf8',
    env: { PATH: process.env.PATH, HOME: folder, GIT_CONFIG_NOSYSTEM: '1' },
  });
const diff = (from: string, to: string) =>
  parseDiff(git('diff', '--full-index', '--no-renames', '--minimal', from, to)).files;
/** What a diff takes away and adds, by file, and where. */
const work = (files: readonly DiffFile[]) =>
  files.map(({ path, rows }) => [
    path,
    ...rows.filter(({ kind }) => kind === 'add' || kind === 'del').map((row) => Object.values(row).join('|')),
  ]);

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'patches-'));
  git('init', '-q');
});
afterAll(() => rmSync(folder, { recursive: true }));

/** Commits what files are to be, null for none; returns the commit. */
function commit(files: Record<string, string[] | null>): string {
  for (const [name, lines] of Object.entries(files)) {
    if (lines) writeFileSync(join(folder, name), lines.map((line) => `${line}\n`).join(''));
    else rmSync(join(folder, name), { force: true });
  }
  git('add', '-A');
  git('commit', '-q', '--allow-empty', '-m', 'x');
  return git('rev-parse', 'HEAD').trim();
}

/** The same numbers on each machine. */
function dice(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return (state >>> 8) % below;
  };
}

/** Makes of lines what a diff says, which has to fit them. */
function patched(lines: readonly string[], file: DiffFile | undefined): string[] {
  const made: string[] = [];
  let at = 0;
  for (const row of file?.rows ?? []) {
    if (row.old !== null) {
      made.push(...lines.slice(at, row.old - 1));
      expect(lines[row.old - 1]).toBe(row.text);
      at = row.old;
    } else if (row.kind === 'hunk') {
      const from = Number(/-(\d+)/.exec(row.text)![1]) - 1;
      made.push(...lines.slice(at, Math.max(from, at)));
      at = Math.max(from, at);
    }
    if (row.new !== null) {
      made.push(row.text);
      expect(made.length).toBe(row.new);
    }
  }
  return [...made, ...lines.slice(at)];
}

test('patches of one edit after the other make of the first lines the last ones', { timeout: 60_000 }, () => {
  for (let seed = 1; seed <= 5; seed += 1) {
    const roll = dice(seed);
    const first = Array.from({ length: 40 }, (_, at) => `${seed} line ${at}`);
    let lines = first;
    const commits = [commit({ a: lines, b: null })];
    for (let step = 0; step < 5; step += 1) {
      lines = [...lines];
      for (let edit = 0; edit <= roll(3); edit += 1)
        lines.splice(roll(lines.length), roll(4), ...Array.from({ length: roll(3) }, () => `${roll(9)}`));
      commits.push(commit({ a: lines }));
    }
    const files = applied(commits.slice(1).map((to, at) => diff(commits[at]!, to)));
    expect(patched(first, files[0]), `seed ${seed}`).toEqual(lines);
  }
});

test('what is undone is no change, and what is not seen is not told', () => {
  const lines = Array.from({ length: 30 }, (_, at) => `line ${at + 1}`);
  const other = lines.with(14, 'other');
  const commits = [
    commit({ a: lines, b: null, c: null }),
    commit({ a: other, b: ['b'] }),
    commit({ a: lines }),
  ];
  const patches = [diff(commits[0]!, commits[1]!), diff(commits[1]!, commits[2]!)];
  expect(applied(patches).map(({ path }) => path)).toEqual(['b']);
  const [a] = applied(patches.slice(0, 1));
  expect(a?.rows.map(({ kind, text }) => `${kind} ${text}`)).toEqual([
    'hunk @@ -12 +12 @@',
    'same line 12',
    'same line 13',
    'same line 14',
    'del line 15',
    'add other',
    'same line 16',
    'same line 17',
    'same line 18',
  ]);
});

test('a change of somebody else keeps the patches before and after it apart', () => {
  const commits = [
    commit({ a: ['1', '2'], b: null, c: null }),
    commit({ a: ['1', '2', 'run'] }),
    commit({ a: ['person', '1', '2', 'run'] }),
    commit({ a: ['person', '1', '2', 'run', 'again'] }),
  ];
  const patches = [diff(commits[0]!, commits[1]!), diff(commits[2]!, commits[3]!)];
  expect(work(applied(patches))).toEqual([
    ['a', 'add|run||3'],
    ['a', 'add|again||5'],
  ]);
  expect(applied(patches)[1]?.rows[0]?.text).toBe('changed by somebody else before this');
});
