// Why a run does not continue, or how it ended, and what to do next: the top of its page.
import type { Command, FlakyTest, IterationView, RunStatus, RunView, RunSummary, TestAbsence } from '../wire';
import { titled, titlesOf, type Titles } from './titles';
import { isOver, ofSummary, type Tone } from './words';

export interface Why {
  tone: Tone;
  icon: string;
  title: string;
  message: string | null;
  /** How to continue, as a sentence, and its commands, the best one first. */
  ways: string | null;
  commands: readonly Command[];
  /** When it continues automatically. */
  until: string | null;
  /** The iteration that tells more: the last one, where it failed. */
  last: IterationView | null;
  /** The branch that has the result. */
  branch: string | null;
}

const words: Record<string, string> = {
  completed: 'Goal reached',
  stuck: 'Stuck',
  failed: 'Failed',
  held: 'Held',
  limit: 'Limit reached',
  timed_out: 'An iteration ran out of time',
  paused: 'Paused',
  waiting: 'Waiting for a service; continues automatically',
  queued: 'In the queue',
  cancelled: 'Cancelled',
};

/** The title of a run that needs a person. */
const needing = (state: RunStatus, word: string): string =>
  state === 'waiting' ? 'Needs your review' : `${words[state] ?? word}: needs you`;

/** What a person can do with a completed run. */
const results = ({ id }: RunSummary): Command[] => [
  { label: 'Land it', argv: ['runnerctl', 'land', '--run', id] },
  { label: 'Open a pull request', argv: ['runnerctl', 'deliver', '--run', id] },
  { label: 'Verify it', argv: ['runnerctl', 'verify', '--run', id] },
];

/** The commands that continue a run, the best one first; the page shows differences itself. */
export const commandsOf = (run: RunSummary): readonly Command[] =>
  run.state === 'completed'
    ? results(run)
    : (run.reason?.commands ?? []).filter(({ argv }) => !argv.includes('--diff'));

/** Null while the run continues without an obstacle. */
export function whyOf(run: RunView, last: IterationView | null, titles: Titles = titlesOf(run)): Why | null {
  const { state, reason } = run.summary;
  const look = ofSummary(run.summary);
  if (state === 'running') {
    const obstacle = run.phase?.obstacle;
    if (!obstacle) return null;
    return {
      tone: 'look',
      icon: '▲',
      title: 'Blocked',
      message: obstacle,
      ways: null,
      commands: [],
      until: null,
      last: null,
      branch: null,
    };
  }
  const failed =
    last !== null &&
    last.verdict !== 'Accepted' &&
    state !== 'completed' &&
    (isOver(state) || state === 'held');
  return {
    tone: look.tone,
    icon: look.icon,
    title: run.summary.needs_you ? needing(state, look.word) : (words[state] ?? look.word),
    message: reason ? titled(reason.message, titles) : null,
    ways: reason?.command ?? null,
    commands: commandsOf(run.summary),
    until: state === 'waiting' ? (run.wait_until ?? null) : null,
    last: failed ? last : null,
    branch: state === 'completed' ? run.summary.branch : null,
  };
}

/** Something to know of a run, and what can be done about it. */
export interface Remark {
  tone: Tone;
  text: string;
  command: Command | null;
}

const accept: Command = { label: 'Accept the changed guard files', argv: ['runnerctl', 'guard', 'accept'] };

const absences: Record<TestAbsence, string> = {
  gone: 'gone or renamed',
  skipped: 'skipped',
  expected_failure: 'expected to fail',
  failed: 'failing, though the guard passes',
};

/** How often a test failed and then passed; the third time, since which task. */
function occasions(test: FlakyTest): string {
  if (test.count < 2) return 'once';
  return test.count < 3 ? `${test.count} times` : `${test.count} times, since task ${test.first_node}`;
}

/** What else somebody should know of a run, each with its tone. */
export function remarks(run: RunView): Remark[] {
  const found: Remark[] = [];
  const add = (tone: Tone, text: string, command: Command | null = null) =>
    found.push({ tone, text, command });
  if (run.baseline === 'fail') add('look', 'The guard failed before the first session.');
  for (const outage of run.outages ?? []) add('wait', `${outage.agent} is not available: ${outage.why}`);
  for (const path of run.guard_changed ?? [])
    add('look', `The guard's definition differs from the accepted one: ${path}`, accept);
  for (const test of run.tests?.first_lost ?? [])
    add('look', `A test that passed before iteration ${test.iter} is ${absences[test.now]}: ${test.name}`);
  const unnamed = (run.tests?.lost ?? 0) - (run.tests?.first_lost.length ?? 0);
  if (unnamed > 0) add('look', `${unnamed} more tests that passed before do not pass now.`);
  for (const test of run.flakes ?? [])
    add(
      'quiet',
      `Failed, then passed on the same files: ${test.name ?? 'the guard, which named no test'} (${occasions(test)})`,
    );
  for (const seen of run.secrets ?? []) add('bad', `${seen.path} contains the secret ${seen.variable}`);
  for (const path of run.reverted ?? [])
    add('look', `Restored, because the agent may not change it: ${path}`);
  for (const path of run.held_back ?? []) add('quiet', `Not on the branch: ${path}`);
  for (const notice of run.notices ?? []) add('quiet', notice);
  for (const change of run.changes ?? []) add('quiet', `To be committed: ${change.command}: ${change.text}`);
  if (run.pending === 'pause') add('look', 'Pauses after this iteration.');
  if (run.pending === 'cancel') add('look', 'Cancelling.');
  return found;
}
