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

/** What a day has cost, by whom. */
export interface Day {
  /** As the reader's calendar has it: `2026-01-31`. */
  day: string;
  sum: number;
  parts: { agent: string; cost: number }[];
}

/** The cost of each day on which an iteration ended, by agent, as far as sessions have told it. */
export function costByDay(iterations: readonly IterationView[]): Day[] {
  const days = new Map<string, Map<string, number>>();
  for (const view of timed(iterations)) {
    const cost = costOf(view);
    if (cost === null) continue;
    const day = calendarDay(new Date(view.ended_at ?? ''));
    const agents = days.get(day) ?? new Map<string, number>();
    const agent = view.agent ?? 'not told';
    days.set(day, agents.set(agent, (agents.get(agent) ?? 0) + cost));
  }
  return [...days]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([day, agents]) => {
      const parts = [...agents].map(([agent, cost]) => ({ agent, cost })).sort((a, b) => b.cost - a.cost);
      return { day, parts, sum: parts.reduce((sum, { cost }) => sum + cost, 0) };
    });
}

function calendarDay(date: Date): string {
  const two = (value: number) => String(value).padStart(2, '0');
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

/** The ceiling on cost of the settings, in millionths; null where there is none. */
export function ceilingOf(settings: readonly { key: string; value?: string | null }[]): number | null {
  const value = Number(settings.find(({ key }) => key === 'max_cost_usd')?.value || NaN);
  return Number.isFinite(value) ? value * 1e6 : null;
}

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
