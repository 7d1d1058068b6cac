// Repositories as a reader wants them in the morning: what needs a person first, then what goes on, then what is done.
import type { RunStatus, StatusView } from '../wire';
import { age } from './format';
import { ofRun, type Tone } from './words';

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
