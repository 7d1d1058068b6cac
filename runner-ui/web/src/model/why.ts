// Why a run does not go on, or how it ended: what stands on top of its page.
import type { Command, IterationView, RunView, TestAbsence } from '../wire';
import { titled, titlesOf, type Titles } from './titles';
import { awaitsReview, isOver, ofSummary, type Tone } from './words';

export interface Why {
  tone: Tone;
  icon: string;
  title: string;
  message: string | null;
  /** What goes on, as a sentence, and its commands. */
  ways: string | null;
  commands: readonly Command[];
  /** When it goes on by itself. */
  until: string | null;
  /** The iteration that tells more: the last one, where it failed. */
  last: IterationView | null;
}

const words: Record<string, string> = {
  completed: 'The goal is reached',
  stuck: 'Stuck: needs your attention',
  failed: 'Failed: needs your attention',
  held: 'Held: needs your attention',
  limit: 'Limit reached',
  timed_out: 'An iteration ran out of time',
  paused: 'Paused',
  waiting: 'Waiting; continues by itself',
  queued: 'In the queue',
  cancelled: 'Cancelled',
};

/** Null while the run goes on and nothing is in its way. */
export function whyOf(run: RunView, last: IterationView | null, titles: Titles = titlesOf(run)): Why | null {
  const { state, reason } = run.summary;
  const look = ofSummary(run.summary);
  if (state === 'running') {
    const obstacle = run.phase?.obstacle;
    if (!obstacle) return null;
    return {
      tone: 'look',
      icon: '▲',
      title: 'Something is in the way',
      message: obstacle,
      ways: null,
      commands: [],
      until: null,
      last: null,
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
    title: awaitsReview(run.summary) ? 'Awaiting your review' : (words[state] ?? look.word),
    message: reason ? titled(reason.message, titles) : null,
    ways: reason?.command ?? null,
    commands: reason?.commands ?? [],
    until: state === 'waiting' ? (run.wait_until ?? null) : null,
    last: failed ? last : null,
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

/** What else somebody should know of a run, each with its tone. */
export function remarks(run: RunView): Remark[] {
  const found: Remark[] = [];
  const add = (tone: Tone, text: string, command: Command | null = null) =>
    found.push({ tone, text, command });
  if (run.baseline === 'fail') add('look', 'The guard failed before the first session.');
  for (const outage of run.outages ?? []) add('wait', `${outage.agent} is not available: ${outage.why}`);
  for (const path of run.guard_changed ?? [])
    add('look', `The guard is defined otherwise than accepted: ${path}`, accept);
  for (const test of run.tests?.first_lost ?? [])
    add('look', `A test that passed before iteration ${test.iter} is ${absences[test.now]}: ${test.name}`);
  const unnamed = (run.tests?.lost ?? 0) - (run.tests?.first_lost.length ?? 0);
  if (unnamed > 0) add('look', `${unnamed} more tests that passed before do not now.`);
  for (const seen of run.secrets ?? []) add('bad', `${seen.path} holds the secret ${seen.variable}`);
  for (const path of run.reverted ?? []) add('look', `Put back, since the agent may not change it: ${path}`);
  for (const path of run.held_back ?? []) add('quiet', `Stays out of the branch: ${path}`);
  for (const notice of run.notices ?? []) add('quiet', notice);
  for (const change of run.changes ?? []) add('quiet', `To be committed: ${change.command}: ${change.text}`);
  if (run.pending === 'pause') add('look', 'Pauses after this iteration.');
  if (run.pending === 'cancel') add('look', 'Cancelling.');
  return found;
}
