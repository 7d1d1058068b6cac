// What stands for the words of the protocol: an icon and a tone beside the word, never a colour alone.
import type { IterationView, PhaseName, RunStatus, RunSummary, VerdictName } from '../wire';

/** The tones of the page; each has a colour per theme. */
export type Tone = 'good' | 'bad' | 'live' | 'look' | 'wait' | 'quiet';

/** How a state is shown. */
export interface Look {
  icon: string;
  word: string;
  tone: Tone;
}

const runs: Record<RunStatus, [string, string, Tone]> = {
  running: ['●', 'running', 'live'],
  queued: ['○', 'queued', 'quiet'],
  paused: ['‖', 'paused', 'quiet'],
  waiting: ['◔', 'waiting for a service', 'wait'],
  held: ['▲', 'held', 'look'],
  completed: ['✔', 'completed', 'good'],
  stuck: ['✖', 'stuck', 'bad'],
  failed: ['✖', 'failed', 'bad'],
  limit: ['■', 'limit reached', 'look'],
  timed_out: ['■', 'timed out', 'bad'],
  cancelled: ['–', 'cancelled', 'quiet'],
};

const verdicts: Record<VerdictName, [string, string, Tone]> = {
  Accepted: ['✔', 'finished', 'good'],
  RedGuard: ['✖', 'guard failed', 'bad'],
  Rejected: ['✖', 'rejected', 'bad'],
  Pending: ['◇', 'awaiting review', 'look'],
  Retry: ['↻', 'handed over', 'look'],
  Narrowed: ['▽', 'narrowed', 'look'],
  Decomposed: ['⋔', 'split', 'live'],
  Broken: ['✖', 'rules broken', 'bad'],
  Fault: ['!', 'no answer', 'bad'],
  Unavailable: ['◔', 'unavailable', 'wait'],
  Timeout: ['■', 'timed out', 'bad'],
  Misconfigured: ['▲', 'misconfigured', 'bad'],
  Interrupted: ['–', 'interrupted', 'quiet'],
};

/** What a phase is called while it lasts. */
const phases: Record<PhaseName, string> = {
  open: 'opening',
  brief: 'writing the prompt',
  work: 'agent at work',
  inspect: 'inspecting',
  guard: 'guard running',
  review: 'under review',
  settle: 'committing',
  over: 'ended',
};

const look = (entry: [string, string, Tone] | undefined, word: string): Look => {
  const [icon, shown, tone] = entry ?? ['?', word, 'quiet'];
  return { icon, word: shown, tone };
};

export const ofRun = (state: RunStatus): Look => look(runs[state], state);

/** The colours of what needs a person; those of a wait for a service are not among them. */
const NEEDING: ReadonlySet<Tone> = new Set(['bad', 'look']);

/** The state of a run, and whether it needs a person; one that waits and needs one waits for a review. */
export function ofSummary({ state, needs_you }: RunSummary): Look {
  const own = ofRun(state);
  if (!needs_you) return own;
  if (state === 'waiting') return { icon: '◇', word: 'needs review', tone: 'look' };
  return NEEDING.has(own.tone) ? own : { ...own, tone: 'look' };
}
export const ofVerdict = (verdict: VerdictName): Look => look(verdicts[verdict], verdict);
export const ofPhase = (phase: PhaseName): string => phases[phase] ?? phase;

/** Whether a run has ended for good. */
export function isOver(state: RunStatus): boolean {
  return ['completed', 'stuck', 'limit', 'timed_out', 'failed', 'cancelled'].includes(state);
}

/** Whether an iteration did not bring its node forward. */
export function isFailure(view: IterationView): boolean {
  return ofVerdict(view.verdict).tone === 'bad';
}
