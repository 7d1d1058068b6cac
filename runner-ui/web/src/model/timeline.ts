// Iterations in time: a row per node, a bar per iteration, segments per phase, and an axis that may leave idle time out.
import type { IterationView, PhaseName, RunView, VerdictName } from '../wire';

/** A part of a bar. */
export interface Segment {
  phase: PhaseName;
  from: number;
  to: number;
}

/** An iteration in time; times are milliseconds since the epoch. */
export interface Bar {
  key: string;
  node: string;
  from: number;
  to: number;
  /** Null while it lasts. */
  verdict: VerdictName | null;
  view: IterationView | null;
  segments: Segment[];
  /** Whether it led to a wait for a service. */
  wait: boolean;
}

/** The bars of one node. */
export interface Row {
  node: string;
  bars: Bar[];
}

/** What is under way, as phases that were entered. */
export interface Live {
  iter: number;
  node: string;
  from: number;
  entered: { phase: PhaseName; at: number }[];
}

/** Name of an iteration in an address. */
export const keyOf = (view: IterationView): string =>
  view.wait == null ? String(view.iter) : `${view.iter}.w${view.wait}`;

/** Makes bars of iterations, oldest first; those whose time is not known are left out. */
export function bars(iterations: readonly IterationView[]): Bar[] {
  const found: Bar[] = [];
  for (const view of iterations) {
    if (!view.ended_at) continue;
    const to = Date.parse(view.ended_at);
    const from = to - (view.duration_ms ?? 0);
    const segments = segmentsOf(view, from, to);
    found.push({
      key: keyOf(view),
      node: view.node,
      from,
      to,
      verdict: view.verdict,
      view,
      segments,
      wait: view.wait != null,
    });
  }
  return found.sort((a, b) => a.from - b.from);
}

function segmentsOf(view: IterationView, from: number, to: number): Segment[] {
  let at = from;
  return (view.phases ?? []).map(({ phase, duration_ms }) => {
    const segment = { phase, from: at, to: Math.min(at + duration_ms, to) };
    at = segment.to;
    return segment;
  });
}

/** The bar of what is under way; its right edge is now. */
export function liveBar(live: Live, now: number): Bar {
  const segments = live.entered.map(({ phase, at }, index) => ({
    phase,
    from: at,
    to: live.entered[index + 1]?.at ?? now,
  }));
  const { iter, node, from } = live;
  return {
    key: String(iter),
    node,
    from,
    to: Math.max(now, from),
    verdict: null,
    view: null,
    segments,
    wait: false,
  };
}

/** What a run's state says is under way. */
export function liveOf(run: RunView | null): Live | null {
  const phase = run?.phase;
  if (!run || !phase || phase.baseline || !run.node) return null;
  const entered = [{ phase: phase.name, at: Date.parse(phase.since) }];
  return { iter: run.iteration, node: run.node.id, from: Date.parse(phase.iteration_since), entered };
}

/** Puts bars into rows: nodes in the order of the tree, those that the tree no longer has at the end. */
export function rowsOf(all: readonly Bar[], order: readonly string[], failedOnly: boolean): Row[] {
  const byNode = new Map<string, Bar[]>();
  for (const bar of all) {
    const list = byNode.get(bar.node);
    if (list) list.push(bar);
    else byNode.set(bar.node, [bar]);
  }
  const known = order.filter((node) => byNode.has(node));
  const inTree = new Set(known);
  const others = [...byNode.keys()].filter((node) => !inTree.has(node));
  const rows = [...known, ...others].map((node) => ({ node, bars: byNode.get(node) ?? [] }));
  return failedOnly
    ? rows.filter((row) => row.bars.some((bar) => bar.verdict !== null && isRed(bar.verdict)))
    : rows;
}

const red: VerdictName[] = ['RedGuard', 'Rejected', 'Broken', 'Fault', 'Timeout', 'Misconfigured'];
export const isRed = (verdict: VerdictName): boolean => red.includes(verdict);

/** A stretch of time and where it lies on the axis, which goes from 0 to 1. */
interface Stretch {
  from: number;
  to: number;
  x0: number;
  x1: number;
  idle: boolean;
}

/** Translates times to places between 0 and 1. */
export interface Axis {
  from: number;
  to: number;
  stretches: Stretch[];
}

/** Idle time is cut where it is longer than this share of the time that was worked. */
const IDLE_SHARE = 0.08;
/** What a cut takes of the axis, as a share of the time that was worked. */
const CUT_SHARE = 0.02;

/** Makes an axis for bars; with `cut` long idle times become short gaps. */
export function axisOf(all: readonly Bar[], cut: boolean): Axis {
  const busy = merge(all);
  const [first, last] = [busy[0], busy.at(-1)];
  if (!first || !last) return { from: 0, to: 1, stretches: [{ from: 0, to: 1, x0: 0, x1: 1, idle: false }] };
  const worked = Math.max(
    busy.reduce((sum, stretch) => sum + stretch.to - stretch.from, 0),
    1,
  );
  const found: { from: number; to: number; width: number; idle: boolean }[] = [];
  busy.forEach((stretch, at) => {
    const before = busy[at - 1];
    if (before) {
      const gap = stretch.from - before.to;
      const long = cut && gap > worked * IDLE_SHARE;
      found.push({ from: before.to, to: stretch.from, width: long ? worked * CUT_SHARE : gap, idle: long });
    }
    found.push({ ...stretch, width: stretch.to - stretch.from, idle: false });
  });
  const whole = Math.max(
    found.reduce((sum, stretch) => sum + stretch.width, 0),
    1,
  );
  let x = 0;
  const stretches = found.map(({ from, to, width, idle }) => {
    const placed = { from, to, x0: x, x1: x + width / whole, idle };
    x = placed.x1;
    return placed;
  });
  return { from: first.from, to: last.to, stretches };
}

function merge(all: readonly Bar[]): { from: number; to: number }[] {
  const merged: { from: number; to: number }[] = [];
  for (const bar of [...all].sort((a, b) => a.from - b.from)) {
    const last = merged.at(-1);
    if (last && bar.from <= last.to) last.to = Math.max(last.to, bar.to);
    else merged.push({ from: bar.from, to: Math.max(bar.to, bar.from + 1) });
  }
  return merged;
}

/** Place of a time on the axis, between 0 and 1. */
export function place(axis: Axis, time: number): number {
  let low = 0;
  let high = axis.stretches.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (axis.stretches[middle]!.to < time) low = middle + 1;
    else high = middle;
  }
  const stretch = axis.stretches[low];
  if (!stretch) return 0;
  const share = stretch.to === stretch.from ? 0 : (time - stretch.from) / (stretch.to - stretch.from);
  return stretch.x0 + Math.min(Math.max(share, 0), 1) * (stretch.x1 - stretch.x0);
}

const steps = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 43200, 86400, 172800, 604800,
];

/** Times for marks below the axis: round ones, `wanted` of them at most; none in an idle time. */
export function ticks(axis: Axis, wanted: number): { time: number; x: number }[] {
  const worked = axis.stretches.reduce((sum, { from, to, idle }) => sum + (idle ? 0 : to - from), 0);
  const step = 1000 * (steps.find((secs) => worked / (secs * 1000) <= wanted) ?? 604800);
  const found: { time: number; x: number }[] = [];
  const apart = 0.6 / Math.max(wanted, 1);
  for (const { from, to, idle } of axis.stretches) {
    if (idle) continue;
    for (let time = Math.ceil(from / step) * step; time <= to; time += step) {
      const x = place(axis, time);
      if (x - (found.at(-1)?.x ?? -1) >= apart) found.push({ time, x });
    }
  }
  return found;
}
