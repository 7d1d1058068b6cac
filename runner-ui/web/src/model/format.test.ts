import { expect, test } from 'vitest';
import {
  age,
  knownCost,
  costNote,
  count,
  dollars,
  labelledCost,
  seconds,
  size,
  span,
  tokens,
} from './format';

test('durations are told in the two units that matter', () => {
  expect([340, 1_450, 42_000, 184_000, 3_900_000, 183_600_000].map(span)).toEqual([
    '340ms',
    '1.4s',
    '42s',
    '3m 04s',
    '1h 05m',
    '2d 03h',
  ]);
  expect([0, 9_900, -5].map(seconds)).toEqual(['0s', '9s', '0s']);
});

test('an age has one unit', () => {
  const now = Date.parse('2026-01-03T12:00:00Z');
  expect(
    ['2026-01-03T11:59:30Z', '2026-01-03T11:20:00Z', '2026-01-03T03:00:00Z', '2025-12-31T12:00:00Z'].map(
      (time) => age(time, now),
    ),
  ).toEqual(['just now', '40 min ago', '9 h ago', '3 days ago']);
});

test('amounts are told in the unit that fits', () => {
  expect([0, 999, 1_450, 38_000_000].map(size)).toEqual(['0 B', '999 B', '1.4 kB', '38 MB']);
  expect([950, 1_250, 3_400_000].map(count)).toEqual(['950', '1.2k', '3.4M']);
  expect(dollars(3_214_000)).toBe('$3.22');
});

test('a cost with unknown parts says so', () => {
  const of = (cost_micro_usd: number | null, cost_unknown: number) => ({
    sessions: 5,
    cost_micro_usd,
    cost_unknown,
  });
  expect([of(3_214_000, 0), of(3_214_000, 2), of(null, 5)].map(knownCost)).toEqual(['$3.22', '>$3.22', '']);
  expect([of(null, 5), { sessions: 0 }].map(labelledCost)).toEqual(['unknown', '–']);
  expect(costNote(of(1, 2))).toBe('At least: 2 of 5 sessions did not say.');
});

test('tokens of which none are known are unknown', () => {
  expect(tokens({ sessions: 1 })).toBeNull();
  expect(tokens({ sessions: 1, input_tokens: 5, output_tokens: 0 })).toBe(5);
});
