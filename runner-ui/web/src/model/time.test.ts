import { expect, test } from 'vitest';
import type { Event, IterationView } from '../wire';
import { agree, enter, newsOf } from './live';
import { byPhase, ceilingOf, consumed, costByDay, costOf, progress, scale, thin } from './plots';
import { axisOf, bars, liveBar, place, rowsOf, ticks } from './timeline';

const view = (
  iter: number,
  node: string,
  end: string,
  ms: number,
  extra: Partial<IterationView> = {},
): IterationView => ({
  run: 'r',
  iter,
  node,
  verdict: 'Accepted',
  status: 'done',
  guard: 'pass',
  commit: null,
  summary: null,
  ended_at: `2026-01-01T${end}Z`,
  duration_ms: ms,
  phases: [
    { phase: 'work', duration_ms: ms / 2 },
    { phase: 'guard', duration_ms: ms / 2 },
  ],
  ...extra,
});
const some = [
  view(1, 'a', '10:01:00', 60_000),
  view(2, 'b', '10:03:00', 60_000, { verdict: 'RedGuard' }),
  view(3, 'b', '22:00:00', 60_000),
];

test('an iteration is a bar with its phases', () => {
  const [bar] = bars(some);
  expect(bar!.to - bar!.from).toBe(60_000);
  expect(bar!.segments.map((part) => [part.phase, part.to - part.from])).toEqual([
    ['work', 30_000],
    ['guard', 30_000],
  ]);
});

test('a try that left no commit has a name of its own', () => {
  expect(bars([view(7, 'a', '10:00:00', 1, { wait: 2 })])[0]).toMatchObject({ key: '7.w2', wait: true });
});

test('rows follow the tree and can be those with failures', () => {
  const all = bars(some);
  expect(rowsOf(all, ['b', 'a'], false).map((row) => row.node)).toEqual(['b', 'a']);
  expect(rowsOf(all, ['a'], false).map((row) => row.node)).toEqual(['a', 'b']);
  expect(rowsOf(all, ['b', 'a'], true).map((row) => row.node)).toEqual(['b']);
});

test('idle time is cut from the axis where that is wanted', () => {
  const all = bars(some);
  const [long, short] = [axisOf(all, false), axisOf(all, true)];
  expect(place(long, all[1]!.to)).toBeLessThan(0.01);
  expect(place(short, all[1]!.to)).toBeGreaterThan(0.5);
  for (const axis of [long, short])
    expect([place(axis, axis.from), place(axis, axis.to)]).toEqual([0, expect.closeTo(1)]);
  expect(short.stretches.filter((stretch) => stretch.idle).length).toBe(2);
});

test('marks are at round times and not too many', () => {
  const marks = ticks(axisOf(bars(some.slice(0, 2)), false), 6);
  expect(marks.length).toBeGreaterThan(1);
  expect(marks.length).toBeLessThanOrEqual(7);
  expect(marks.every((mark) => mark.time % 1000 === 0)).toBe(true);
});

const phase = (iter: number, phase: string, second: number): Event =>
  ({
    seq: second,
    time: `2026-01-01T10:00:0${second}Z`,
    repo: 'x',
    run: 'r',
    iter,
    kind: 'phase',
    data: { phase, node: 'a' },
  }) as Event;

test('phases are put together from events, and what is done again takes the place of what was', () => {
  const heard = [phase(4, 'open', 0), phase(4, 'work', 1), phase(4, 'guard', 2), phase(4, 'work', 3)].reduce(
    enter,
    null as ReturnType<typeof enter>,
  );
  expect(heard!.entered.map((entry) => entry.phase)).toEqual(['open', 'work']);
  expect(enter(heard, phase(4, 'over', 4))).toBeNull();
  const bar = liveBar(heard!, Date.parse('2026-01-01T10:00:09Z'));
  expect(bar.segments.at(-1)).toMatchObject({ phase: 'work', to: Date.parse('2026-01-01T10:00:09Z') });
});

test('the state overrules what was heard of another iteration', () => {
  const told = { iter: 5, node: 'b', from: 1, entered: [{ phase: 'guard' as const, at: 2 }] };
  expect(agree(enter(null, phase(4, 'open', 0)), told)).toEqual(told);
  expect(agree(enter(null, phase(5, 'open', 0)), told)!.entered.map((entry) => entry.phase)).toEqual([
    'open',
    'guard',
  ]);
  expect(agree(enter(null, phase(5, 'open', 0)), null)).toBeNull();
});

test('an event says what is stale, and one that is not understood says nothing', () => {
  const message = (event: string, data: unknown) =>
    newsOf({ id: '1', event, data: typeof data === 'string' ? data : JSON.stringify(data) });
  expect(message('tree_changed', { ...phase(1, 'open', 0), kind: 'tree' })).toMatchObject({
    kind: 'stale',
    what: ['tree', 'status'],
  });
  expect(message('resync', {})).toEqual({ kind: 'all' });
  expect(message('daemon_gone', {})).toEqual({ kind: 'gone' });
  expect(message('hello', {})).toEqual({ kind: 'began' });
  expect(message('activity', { ...phase(1, 'open', 0), kind: 'activity' })).toMatchObject({
    kind: 'output',
    phase: 'activity',
  });
  for (const data of ['{', 'null', '[]', '{}'])
    expect(message('tree_changed', data)).toEqual({ kind: 'nothing' });
  expect(message('something_new', phase(1, 'open', 0))).toEqual({ kind: 'nothing' });
});

test('progress grows with what is accepted and ends at what passes now', () => {
  expect(progress(some, 4).map((point) => point.value)).toEqual([2, 3, 4, 4]);
  expect(progress([], 0)).toEqual([]);
});

test('a cost that nobody told is no line at zero', () => {
  expect(consumed(some, costOf)).toBeNull();
  const told = some.map((one) => ({ ...one, usage: { sessions: 1, cost_micro_usd: 10 } }));
  expect(consumed(told, costOf)!.map((point) => point.value)).toEqual([0, 10, 20, 30]);
});

test('the shares of the phases are of the whole', () => {
  expect(byPhase(some)).toEqual([
    { phase: 'work', ms: 90_000, share: 0.5 },
    { phase: 'guard', ms: 90_000, share: 0.5 },
  ]);
});

test('long series are thinned out and keep their ends', () => {
  const points = Array.from({ length: 5000 }, (_, at) => ({ at, value: at }));
  const few = thin(points, 100);
  expect([few.length, few[0]!.at, few.at(-1)!.at]).toEqual([100, 0, 4999]);
});

test('scales end at round values', () => {
  expect(scale(7, 4, true)).toEqual({ top: 8, marks: [0, 2, 4, 6, 8] });
  expect(scale(0, 4).top).toBe(1);
});

test('a day has the cost of the iterations that ended on it, by agent', () => {
  const on = (day: string, agent: string | null, cost: number | null): IterationView => ({
    ...view(1, 'a', '12:00:00', 1000),
    ended_at: `${day}T12:00:00`,
    agent,
    usage: { sessions: 1, cost_micro_usd: cost },
  });
  const days = costByDay([
    on('2026-01-02', 'codex 1', 5),
    on('2026-01-01', 'claude 2', 1),
    on('2026-01-02', 'claude 2', 7),
    on('2026-01-02', 'codex 1', null),
    on('2026-01-03', null, 2),
  ]);
  expect(days.map(({ day, sum }) => [day, sum])).toEqual([
    ['2026-01-01', 1],
    ['2026-01-02', 12],
    ['2026-01-03', 2],
  ]);
  expect(days[1]?.parts).toEqual([
    { agent: 'claude 2', cost: 7 },
    { agent: 'codex 1', cost: 5 },
  ]);
});

test('a ceiling is drawn where the settings have one', () => {
  expect(ceilingOf([{ key: 'max_cost_usd', value: '25.0' }])).toBe(25_000_000);
  for (const value of ['', 'none', 'off']) expect(ceilingOf([{ key: 'max_cost_usd', value }])).toBeNull();
  expect(ceilingOf([])).toBeNull();
});
