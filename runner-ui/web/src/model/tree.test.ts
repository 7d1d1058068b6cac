import { describe, expect, test } from 'vitest';
import type { IterationView, Node } from '../wire';
import { ancestors, forest, press, rows, spent, spentBelow, stateOf, typeAhead, type Now } from './tree';

const node = (id: string, children: Node[] = [], extra: Partial<Node> = {}): Node => ({
  id,
  order: 1,
  title: id,
  goal: '',
  acceptance: [],
  passes: false,
  attempts: 0,
  max_attempts: 3,
  children,
  ...extra,
});
const now: Now = { current: 'c', live: true, pending: new Set() };
const tree = () =>
  forest(
    node('root', [
      node('b', [node('b1', [], { passes: true })], { passes: true, order: 2 }),
      node('a', [], { order: 1 }),
      node('c', [], { order: 3 }),
    ]),
  );
const ids = (list: { node: Node }[]) => list.map((row) => row.node.id);

test('rows are in the order of the tree and what has passed is folded', () => {
  const list = rows(tree(), new Map(), now);
  expect(ids(list)).toEqual(['root', 'a', 'b', 'c']);
  expect(list[2]).toMatchObject({ folded: true, passed: 1, leaves: 1, place: 2, siblings: 3, depth: 1 });
  expect(list[0]).toMatchObject({ passed: 1, leaves: 3 });
});

test('a branch that passed opens for what is chosen inside of it and for the reader', () => {
  const found = tree();
  expect(ids(rows(found, new Map(), now, new Set(ancestors(found, 'b1'))))).toContain('b1');
  expect(ids(rows(found, new Map([['b', false]]), now))).toContain('b1');
  expect(ids(rows(found, new Map([['root', true]]), now))).toEqual(['root']);
});

test('a tree that has passed shows its first level', () => {
  const passed = { passes: true };
  const found = forest(node('root', [node('a', [node('a1', [], passed)], passed)], passed));
  expect(ids(rows(found, new Map(), now))).toEqual(['root', 'a']);
});

test('the state of a node is told', () => {
  expect(stateOf(node('c'), now)).toBe('live');
  expect(stateOf(node('c'), { ...now, live: false })).toBe('next');
  expect(stateOf(node('x', [], { attempts: 3 }), now)).toBe('exhausted');
  expect(stateOf(node('x'), { ...now, pending: new Set(['x']) })).toBe('pending');
});

describe('keys', () => {
  const list = rows(tree(), new Map(), now);
  test('move between rows and stop at the ends', () => {
    expect(press('ArrowDown', list, 'root')).toEqual({ focus: 'a' });
    expect(press('ArrowUp', list, 'root')).toEqual({ focus: 'root' });
    expect(press('End', list, 'root')).toEqual({ focus: 'c' });
    expect(press('Home', list, 'c')).toEqual({ focus: 'root' });
  });
  test('unfold, go in, fold, go out', () => {
    expect(press('ArrowRight', list, 'b')).toEqual({ fold: 'b', folded: false });
    expect(press('ArrowRight', list, 'root')).toEqual({ focus: 'a' });
    expect(press('ArrowLeft', list, 'root')).toEqual({ fold: 'root', folded: true });
    expect(press('ArrowLeft', list, 'a')).toEqual({ focus: 'root' });
    expect(press('ArrowRight', list, 'a')).toBeNull();
  });
  test('choose', () => expect(press('Enter', list, 'a')).toEqual({ choose: 'a' }));
  test('letters lead to the next title that begins with them, in a circle', () => {
    expect(typeAhead('c', list, 'root')).toBe('c');
    expect(typeAhead('a', list, 'a')).toBe('a');
    expect(typeAhead('zz', list, 'a')).toBeNull();
  });
});

test('what a branch cost has its failures and all below', () => {
  const view = (id: string, cost: number | null): IterationView =>
    ({
      node: id,
      duration_ms: 1000,
      usage: { sessions: 1, cost_micro_usd: cost, cost_unknown: cost === null ? 1 : 0 },
    }) as IterationView;
  const by = spent([view('a', 5), view('a', null), view('c', 7)]);
  const sum = spentBelow(tree().root, by);
  expect([sum.iterations, sum.ms, sum.usage.cost_micro_usd, sum.usage.cost_unknown]).toEqual([
    3, 3000, 12, 1,
  ]);
});

test('20,000 nodes are listed in no time and few of them are drawn', () => {
  const wide = node(
    'root',
    Array.from({ length: 200 }, (_, at) =>
      node(
        `n${at}`,
        Array.from({ length: 100 }, (_, leaf) => node(`n${at}.${leaf}`)),
      ),
    ),
  );
  const began = performance.now();
  const list = rows(forest(wide), new Map(), now);
  expect(list.length).toBe(20_201);
  expect(performance.now() - began).toBeLessThan(1000);
});

test('a tree as deep as it may be does not overflow', () => {
  let deep = node('n0');
  for (let at = 1; at < 20_000; at += 1) deep = node(`n${at}`, [deep]);
  expect(rows(forest(deep), new Map(), now).length).toBe(20_000);
});
