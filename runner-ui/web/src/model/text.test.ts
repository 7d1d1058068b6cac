import { expect, test } from 'vitest';
import { bare, pieces } from './ansi';
import { parseDiff } from './diff';
import { isError, Lines, LONGEST_LINE, MOST_LINES, sift } from './log';
import { safe, safeLines } from './safe';

test('control characters are shown as symbols', () => {
  expect(safe('a\u0000b\u001bc\u007fd\u202ee\tf\ng')).toBe('a\u2400b\u241bc\u2421d\ufffde f g');
  expect(safeLines('a\r\nb\tc')).toBe('a\nb\tc');
  expect(safe('\u{e0041}\u200b')).toBe('\ufffd\ufffd');
  expect(safe('👩\u200d💻 é')).toBe('👩\u200d💻 é');
});

test('markup is text like any other', () => {
  expect(pieces('<script>alert(1)</script>')).toEqual([{ text: '<script>alert(1)</script>', look: '' }]);
});

test('colours become looks and everything else of a terminal is left out', () => {
  expect(pieces('\u001b[1;31mred\u001b[0m \u001b]8;;http://x\u0007link\u001b]8;;\u0007\u001b[2J')).toEqual([
    { text: 'red', look: 'fg-red bold' },
    { text: ' link', look: '' },
  ]);
  expect(pieces('\u001b[38;5;46mgreen\u001b[39mplain\u001b[38;2;0;0;255mblue')).toEqual([
    { text: 'green', look: 'fg-green' },
    { text: 'plain', look: '' },
    { text: 'blue', look: 'fg-blue' },
  ]);
});

test('an escape sequence that does not end hides no text', () => {
  expect(bare('a\u001b[31')).toBe('a\u241b[31');
  expect(bare('\u001b')).toBe('\u241b');
  expect(bare('a\u001b]0;title')).toBe('a\u241b]0;title');
});

test('of a line that was written over the last writing is seen', () => {
  expect(bare('10 %\r50 %\r100 %\r')).toBe('100 %');
});

test('a log that comes in pieces is the same as in one', () => {
  const bytes = new TextEncoder().encode('one é\ntwo\nthree');
  const lines = new Lines();
  for (let at = 0; at < bytes.length; at += 1) lines.take(bytes.subarray(at, at + 1), false);
  expect(lines.list).toEqual(['one é', 'two', 'three']);
  lines.add('\n');
  expect([lines.count, lines.first]).toEqual([3, 1]);
});

test('a log keeps a bounded number of lines and knows which', () => {
  const lines = new Lines();
  lines.add('x\n'.repeat(MOST_LINES + 500));
  expect(lines.list.length).toBeLessThanOrEqual(MOST_LINES);
  expect(lines.first + lines.count - 1).toBe(MOST_LINES + 500);
  lines.add('y'.repeat(LONGEST_LINE * 3));
  expect(lines.list.at(-1)!.length).toBeLessThan(LONGEST_LINE + 10);
});

test('errors are told from words about errors that did not happen', () => {
  expect(['error: x', 'not ok 3', 'thread panicked', 'FAILED tests'].every(isError)).toBe(true);
  expect(['0 errors', 'no failures', 'ok', 'failed: 0'].some(isError)).toBe(false);
});

test('search and errors only narrow each other', () => {
  const lines = ['ok parse', 'error parse', 'error lex'];
  expect(sift(lines, '', false)).toBeNull();
  expect(sift(lines, 'PARSE', false)).toEqual([0, 1]);
  expect(sift(lines, 'parse', true)).toEqual([1]);
});

test('a diff has files, numbers of lines and sums', () => {
  const text =
    'diff --git a/x b/x\nindex 1..2\n--- a/x\n+++ b/x\n@@ -3,2 +3,3 @@ fn\n a\n-b\n+c\n+--- d\n\\ No newline at end of file\n';
  const { files, left } = parseDiff(text);
  expect([files.length, files[0]!.path, files[0]!.added, files[0]!.removed, left]).toEqual([1, 'x', 2, 1, 0]);
  expect(files[0]!.rows.map((row) => [row.kind, row.old, row.new])).toEqual([
    ['hunk', null, null],
    ['same', 3, 3],
    ['del', 4, null],
    ['add', null, 4],
    ['add', null, 5],
    ['note', null, null],
  ]);
});

test('lines of a hunk that look like a header stay lines', () => {
  const { files } = parseDiff(
    'diff --git a/x b/x\n@@ -1,1 +1,1 @@\n-diff --git a/y b/y\n+diff --git a/z b/z\n',
  );
  expect([files.length, files[0]!.added, files[0]!.removed]).toEqual([1, 1, 1]);
});
