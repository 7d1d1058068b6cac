// Repositories as a reader wants them in the morning: what needs a person first, then what goes on, then what is done.
import type { RunStatus, StatusView } from '../wire';
import { age } from './format';
import { keyOf } from './timeline';
import { isOver, ofRun, ofSummary, type Look, type Tone } from './words';

/** What a repository asks of its reader. */
export type Group = 'needs' | 'goes' | 'done';

/** Whether it needs a person, as the daemon says; else whether it continues or is done. */
export function groupOf(one: StatusView): Group {
  if (one.repo.held || one.run?.summary.needs_you) return 'needs';
  const state = stateOf(one);
  return state === null || isOver(state) ? 'done' : 'goes';
}

/** The run and the iteration whose guard failed last, where that needs a person, as one text; null otherwise. */
export function redOf(one: StatusView): string | null {
  const last = one.run?.recent[0];
  if (groupOf(one) !== 'needs' || !one.run || last?.verdict !== 'RedGuard') return null;
  return `${one.run.summary.id}\n${keyOf(last)}`;
}

/** A repository with its isolated runs, each of which has a workspace of its own. */
export interface Entry {
  one: StatusView;
  isolated: StatusView[];
}

/** Repositories with their isolated runs below them; a workspace whose repository is not among them stands alone. */
export function entriesOf(all: readonly StatusView[]): Entry[] {
  const ids = new Set(all.map((one) => one.repo.id));
  const isBelow = (one: StatusView) => one.repo.source_id != null && ids.has(one.repo.source_id);
  return all
    .filter((one) => !isBelow(one))
    .map((one) => ({ one, isolated: all.filter((other) => other.repo.source_id === one.repo.id) }));
}

const membersOf = (entry: Entry): StatusView[] => [entry.one, ...entry.isolated];

/** What the most urgent of its runs asks. */
export function groupOfEntry(entry: Entry): Group {
  const groups = new Set(membersOf(entry).map(groupOf));
  if (groups.has('needs')) return 'needs';
  return groups.has('goes') ? 'goes' : 'done';
}

/** Repositories by what they ask of their reader, each group in the order of their most urgent runs; empty groups are left out. */
export function grouped(entries: readonly Entry[]): [Group, Entry[]][] {
  const groups: Group[] = ['needs', 'goes', 'done'];
  const found = groups.map((group): [Group, Entry[]] => [
    group,
    entries
      .filter((entry) => groupOfEntry(entry) === group)
      .sort((a, b) => placeOf(a) - placeOf(b) || compare(a.one, b.one)),
  ]);
  return found.filter(([, members]) => members.length > 0);
}

const placeOf = (entry: Entry): number => Math.min(...membersOf(entry).map(place));

/** Under which repository a run is shown: an isolated one is followed in its workspace, whoever names its repository. */
export function whereIs(all: readonly StatusView[], repo: string, run: string | null): string {
  const works = all.find((one) => run !== null && one.repo.source_id === repo && isolatedRun(one) === run);
  return works?.repo.id ?? repo;
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

const folderOf = (path: unknown, otherwise: string): string =>
  typeof path === 'string' ? (path.split('/').filter(Boolean).at(-1) ?? path) : otherwise;

/** The run that a workspace was made for; null of any other repository. */
export function isolatedRun(one: StatusView): string | null {
  if (one.repo.source_id == null) return null;
  return one.run?.summary.id ?? folderOf(one.repo.path, one.repo.id);
}

/** Name of the folder; of a workspace, of the repository that its run was begun from. */
export function nameOf(one: StatusView): string {
  return folderOf(one.repo.source_id == null ? one.repo.path : one.repo.source, one.repo.id);
}

/** The folder that a repository is in. */
export const placeOfFolder = (one: StatusView): string =>
  typeof one.repo.path === 'string' ? one.repo.path.replace(/\/[^/]+\/?$/, '') : '';

/** Names that several repositories have: their folders tell them apart. */
export function sharedNames(all: readonly StatusView[]): ReadonlySet<string> {
  const names = all.filter((one) => one.repo.source_id == null).map(nameOf);
  return new Set(names.filter((name, at) => names.indexOf(name) !== at));
}

/** The name, and the run of a workspace. */
export function fullNameOf(one: StatusView): string {
  const run = isolatedRun(one);
  return run === null ? nameOf(one) : `${nameOf(one)} ${run}`;
}

/** How its state is shown; null where it has no run. */
export function lookOf(one: StatusView): Look | null {
  if (one.repo.held) return { ...ofRun('held'), tone: 'look' };
  return one.run ? ofSummary(one.run.summary) : null;
}

const place = (one: StatusView): number => {
  const look = lookOf(one);
  return look === null ? 6 : rank[look.tone];
};

const compare = (a: StatusView, b: StatusView): number =>
  nameOf(a).localeCompare(nameOf(b)) || (a.repo.id < b.repo.id ? -1 : 1);

export const sorted = (all: readonly StatusView[]): StatusView[] =>
  [...all].sort((a, b) => place(a) - place(b) || compare(a, b));

/** How many repositories are in each state, in the same order. */
export function summed(all: readonly StatusView[]): [Look, number][] {
  const sums = new Map<string, [Look, number]>();
  for (const one of all) {
    const look = lookOf(one);
    if (look) sums.set(look.word, [look, (sums.get(look.word)?.[1] ?? 0) + 1]);
  }
  return [...sums.values()];
}

/** When something happened last. */
export function since(one: StatusView, now: number): string {
  const run = one.run;
  if (!run) return '';
  if (run.phase) return `began ${age(run.phase.iteration_since, now)}`;
  const last = run.summary.ended_at ?? run.recent[0]?.ended_at ?? run.summary.queued_at;
  return age(last, now);
}
