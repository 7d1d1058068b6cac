import { expect, test } from 'vitest';
import { compare, shortened } from './compare';

/** Both texts as the rows tell them. */
function told(rows: ReturnType<typeof compare>) {
  const of = (kind: string) =>
    rows.filter((row) => row.kind === 'same' || row.kind === kind).map((row) => row.text);
  return [of('del'), of('add')];
}

test('what is compared can be put together again, whatever it is', () => {
  let seed = 7;
  const random = (n: number) => (seed = (seed * 1103515245 + 12345) % 2 ** 31) % n;
  for (let round = 0; round < 300; round += 1) {
    const text = () => Array.from({ length: random(14) }, () => 'abcd'[random(4)]!);
    const [before, after] = [text(), text()];
    const rows = compare(before, after);
    expect(told(rows), `${before} | ${after}`).toEqual([before, after]);
    expect(rows.map((row) => row.old).filter((n) => n !== null)).toEqual(before.map((_, at) => at + 1));
    expect(rows.map((row) => row.new).filter((n) => n !== null)).toEqual(after.map((_, at) => at + 1));
  }
});

test('a line that changed is one line less and one more', () => {
  const kinds = compare(['a', 'b', 'c', 'd'], ['a', 'x', 'c', 'd']).map((row) => row.kind);
  expect(kinds).toEqual(['same', 'del', 'add', 'same', 'same']);
  expect(compare(['a'], ['a']).every((row) => row.kind === 'same')).toBe(true);
});

test('texts that have nothing in common are told in time', () => {
  const lines = (word: string) => Array.from({ length: 20_000 }, (_, at) => `${word} ${at}`);
  const rows = compare(lines('a'), lines('b'));
  expect(rows.length).toBe(40_000);
});

test('equal lines far from a difference are counted', () => {
  const before = Array.from({ length: 40 }, (_, at) => `line ${at}`);
  const after = before.with(20, 'another');
  const rows = shortened(compare(before, after));
  expect(rows[0]).toMatchObject({ kind: 'left', text: '17 equal lines' });
  expect(rows.filter((row) => row.kind === 'same')).toHaveLength(6);
  expect(shortened(compare(before, before))).toMatchObject([{ kind: 'left', text: '40 equal lines' }]);
});
