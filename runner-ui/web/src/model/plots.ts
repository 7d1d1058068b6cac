// Figures of a run over its iterations: progress, consumption, and how its time was spent.
import type { IterationView, PhaseName } from '../wire';
import { tokens } from './format';

/** A point of a series: time in milliseconds since the epoch. */
export interface Point {
  at: number;
  value: number;
}

/** Leaves that passed, growing by one with each iteration that was accepted, up to what the tree says now. */
export function progress(iterations: readonly IterationView[], passedNow: number): Point[] {
  const ends = timed(iterations).filter((view) => view.verdict === 'Accepted');
  // What passed before the iterations that are listed, or by other means, was there from the beginning.
  const before = Math.max(passedNow - ends.length, 0);
  const first = timed(iterations)[0];
  const points = first ? [{ at: begin(first), value: before }] : [];
  ends.forEach((view, at) => points.push({ at: Date.parse(view.ended_at ?? ''), value: before + at + 1 }));
  const last = timed(iterations).at(-1);
  if (last && points.length > 0)
    points.push({ at: Date.parse(last.ended_at ?? ''), value: points.at(-1)?.value ?? 0 });
  return points;
}

/** What was consumed up to the end of each iteration; null where no session said. */
export function consumed(
  iterations: readonly IterationView[],
  of: (view: IterationView) => number | null,
): Point[] | null {
  const views = timed(iterations);
  const first = views[0];
  if (!first || views.every((view) => of(view) === null)) return null;
  let sum = 0;
  const points = [{ at: begin(first), value: 0 }];
  for (const view of views)
    points.push({ at: Date.parse(view.ended_at ?? ''), value: (sum += of(view) ?? 0) });
  return points;
}

export const costOf = (view: IterationView): number | null => view.usage?.cost_micro_usd ?? null;
export const tokensOf = (view: IterationView): number | null => tokens(view.usage);

/** Milliseconds in each phase, the longest first, and their share of the whole. */
export function byPhase(
  iterations: readonly IterationView[],
): { phase: PhaseName; ms: number; share: number }[] {
  const sums = new Map<PhaseName, number>();
  for (const view of iterations) {
    for (const { phase, duration_ms } of view.phases ?? [])
      sums.set(phase, (sums.get(phase) ?? 0) + duration_ms);
  }
  const whole = [...sums.values()].reduce((sum, ms) => sum + ms, 0);
  return [...sums]
    .map(([phase, ms]) => ({ phase, ms, share: whole === 0 ? 0 : ms / whole }))
    .filter(({ ms }) => ms > 0)
    .sort((a, b) => b.ms - a.ms);
}

/** Thins a series out to at most `most` points; first and last stay. */
export function thin(points: readonly Point[], most: number): Point[] {
  if (points.length <= most) return [...points];
  const step = (points.length - 1) / (most - 1);
  return Array.from({ length: most }, (_, at) => points[Math.round(at * step)]!);
}

/** A round number at or above a value, and marks up to it. */
export function scale(top: number, wanted: number, whole = false): { top: number; marks: number[] } {
  if (top <= 0) return { top: 1, marks: [0, 1] };
  const raw = top / wanted;
  const power = 10 ** Math.floor(Math.log10(raw));
  const found = [1, 2, 2.5, 5, 10].map((by) => by * power).find((size) => size >= raw) ?? raw;
  const step = whole ? Math.max(Math.ceil(found), 1) : found;
  const count = Math.ceil(top / step);
  return { top: count * step, marks: Array.from({ length: count + 1 }, (_, at) => at * step) };
}

const timed = (iterations: readonly IterationView[]) => iterations.filter((view) => view.ended_at);
const begin = (view: IterationView) => Date.parse(view.ended_at ?? '') - (view.duration_ms ?? 0);
