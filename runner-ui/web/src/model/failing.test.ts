import { expect, test } from 'vitest';
import { claimOf, toldOf } from './failing';

const first = (name: string, ...lines: string[]) => [claimOf({ name, lines }), toldOf({ name, lines })];

test('what did not hold comes before where it was told, and no banner is shown', () => {
  const claim = 'assertion `left == right` failed';
  const at = "thread 'brackets' panicked at tests/all.rs:88:5:";
  expect(
    first(
      'brackets',
      '---- brackets stdout ----',
      at,
      claim,
      '  left: 3',
      ' right: 4',
      'note: run with `RUST_BACKTRACE=1`',
    ),
  ).toEqual([claim, ['brackets', claim, '  left: 3', ' right: 4', at]]);
});

test('the line that names a test stands for its name', () => {
  expect(first('parses ((', 'not ok 181 - parses ((', '  expected an error, got 3')).toEqual([
    '  expected an error, got 3',
    ['not ok 181 - parses ((', '  expected an error, got 3'],
  ]);
});

test.each([
  [
    'test_sum',
    ['____ test_sum ____', 'def test_sum():', '>   assert 1 == 2', 'E   assert 1 == 2'],
    '>   assert 1 == 2',
  ],
  [
    'cannot find `x`',
    ['error[E0425]: cannot find `x`', ' --> src/a.rs:1:1'],
    'error[E0425]: cannot find `x`',
  ],
  ['adds', ['● adds', '\u001b[31mExpected: 2\u001b[0m', 'Received: 3'], '\u001b[31mExpected: 2\u001b[0m'],
  ['odd', ['odd'], 'odd'],
  ['silent', [], 'silent'],
])('of %s the right line is chosen', (name, lines, claim) => {
  expect(claimOf({ name, lines })).toBe(claim);
});
