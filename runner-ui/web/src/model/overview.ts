// Repositories as a reader wants them in the morning: what needs a person first, then what goes on, then what is done.
import type { RunStatus, StatusView } from '../wire';
import { age } from './format';
import { ofRun, type Tone } from './words';

/** What a repository asks of its reader. */
export type Group = 'needs' | 'goes' | 'done';

/** Ended without its goal, or stopped until a person says something. */
const NEEDS: ReadonlySet<RunStatus> = new Set(['held', 'stuck', 'failed', 'limit', 'timed_out', 'paused']);
const GOES: ReadonlySet<RunStatus> = new Set(['running', 'queued', 'waiting']);

/** Whether somebody has to look, whether it goes on by itself, or neither. */
export function groupOf(one: StatusView): Group {
  const state = stateOf(one);
  if (state === null) return 'done';
  // One that waits for a review waits for a person, one that waits for a service does not.
  const commands = one.run?.summary.reason?.commands ?? [];
  const isReview = state === 'waiting' && commands.some((command) => command.argv.includes('approve'));
  if (isReview || NEEDS.has(state)) return 'needs';
  return GOES.has(state) ? 'goes' : 'done';
}

/** Repositories by what they ask of their reader, each group in the order of [`sorted`]; empty groups are left out. */
export function grouped(all: readonly StatusView[]): [Group, StatusView[]][] {
  const groups: Group[] = ['needs', 'goes', 'done'];
  const found = groups.map((group): [Group, StatusView[]] => [
    group,
    sorted(all.filter((one) => groupOf(one) === group)),
  ]);
  return found.filter(([, members]) => members.length > 0);
}

/** How many wait for a person. */
export const needing = (all: readonly StatusView[]): number =>
  all.filter((one) => groupOf(one) === 'needs').length;

/** When something happened last that a reader may want to know of; null where nothing has. */
export function changedAt(one: StatusView): number | null {
  const run = one.run;
  if (!run) return null;
  const times = [run.summary.ended_at, run.recent[0]?.ended_at, run.summary.queued_at];
  return Math.max(...times.flatMap((time) => (time ? [Date.parse(time)] : [])));
}

/** What is called by its goal: a run, where that is told. */
export const headlineOf = (one: StatusView): string | null => one.run?.summary.goal ?? null;

const rank: Record<Tone, number> = { bad: 0, look: 1, wait: 3, live: 2, quiet: 4, good: 5 };

export function stateOf(one: StatusView): RunStatus | null {
  return one.repo.held ? 'held' : (one.run?.summary.state ?? null);
}

/** Name of the folder. */
export function nameOf(one: StatusView): string {
  const path = typeof one.repo.path === 'string' ? one.repo.path : one.repo.id;
  return path.split('/').filter(Boolean).at(-1) ?? path;
}

export function sorted(all: readonly StatusView[]): StatusView[] {
  const place = (one: StatusView) => {
    const state = stateOf(one);
    return state === null ? 6 : rank[ofRun(state).tone];
  };
  return [...all].sort(
    (a, b) => place(a) - place(b) || nameOf(a).localeCompare(nameOf(b)) || (a.repo.id < b.repo.id ? -1 : 1),
  );
}

/** How many repositories are in each state, in the same order. */
export function summed(all: readonly StatusView[]): [RunStatus, number][] {
  const sums = new Map<RunStatus, number>();
  for (const one of all) {
    const state = stateOf(one);
    if (state) sums.set(state, (sums.get(state) ?? 0) + 1);
  }
  return [...sums];
}

/** When something happened last. */
export function since(one: StatusView, now: number): string {
  const run = one.run;
  if (!run) return '';
  if (run.phase) return `began ${age(run.phase.iteration_since, now)}`;
  const last = run.summary.ended_at ?? run.recent[0]?.ended_at ?? run.summary.queued_at;
  return age(last, now);
}
