import { expect, test } from 'vitest';
import type { Node } from '../wire';
import { linesOf, longestPath } from './groups';
import type { Bar } from './timeline';
import { forest, nothing } from './tree';

const bar = (node: string, from: number): Bar => ({
  key: String(from),
  node,
  from,
  to: from + 1,
  verdict: 'Accepted',
  view: null,
  segments: [],
  wait: false,
});
const row = (node: string, ...at: number[]) => ({ node, bars: at.map((from) => bar(node, from)) });
const parents = new Map([
  ['root', null],
  ['a', 'root'],
  ['a1', 'a'],
  ['a2', 'a'],
  ['b1', 'b'],
]);
const names = (folds: [string, boolean][] = []) =>
  linesOf([row('a1', 1, 5), row('a2', 3), row('b1', 7)], parents, new Map(folds)).map(
    ({ node, tasks, inner }) => [node, tasks, inner],
  );

test('tasks stand below their parent, and one alone stands by itself', () => {
  expect(names()).toEqual([
    ['a', 2, false],
    ['a1', 0, true],
    ['a2', 0, true],
    ['b1', 0, false],
  ]);
});

test('a parent that is folded has the bars of all its tasks, in order', () => {
  const [line] = linesOf([row('a1', 1, 5), row('a2', 3)], parents, new Map([['a', true]]));
  expect(line?.bars.map((one) => one.from)).toEqual([1, 3, 5]);
  expect(names([['a', true]])).toEqual([
    ['a', 2, false],
    ['b1', 0, false],
  ]);
});

test('of many tasks the parents are seen first', () => {
  const many = Array.from({ length: 60 }, (_, at) => row(`n${at}`, at));
  const above = new Map(many.map(({ node }, at): [string, string] => [node, at < 30 ? 'x' : 'y']));
  expect(linesOf(many, above, new Map()).map((line) => line.node)).toEqual(['x', 'y']);
  expect(linesOf(many, above, new Map([['x', false]])).length).toBe(32);
});

test('the longest path goes where the time went', () => {
  const node = (id: string, children: Node[] = []): Node =>
    ({ id, order: 1, title: id, goal: id, children }) as Node;
  const found = forest(node('root', [node('a', [node('a1'), node('a2')]), node('b')]));
  const took = (ms: number) => ({ ms, usage: nothing(), iterations: 1 });
  const by = new Map([
    ['a1', took(10)],
    ['a2', took(30)],
    ['b', took(35)],
  ]);
  expect(longestPath(found, by)).toEqual(['root', 'a', 'a2']);
  expect(longestPath(found, new Map())).toEqual([]);
});
