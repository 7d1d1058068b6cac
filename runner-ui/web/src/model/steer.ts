// What a person can do about a run from the page: the commands that it knows how to carry out itself.
import type { Command, RunView, Steer } from '../wire';

/** Something that can be done. */
export interface Act {
  label: string;
  /** What it makes of a text that is written for it; null where it takes none. */
  writes: string | null;
  /** What is asked once more, where it cannot be taken back. */
  sure: string | null;
  /** What is ordered, one after the other. */
  orders: (text: string) => Steer[];
}

const act = (label: string, orders: Steer[], sure: string | null = null): Act => ({
  label,
  writes: null,
  sure,
  orders: () => orders,
});
const resume = { action: 'resume', now: false, more: null } satisfies Steer;

const FOR_GOOD = 'It is committed to the branch and cannot be taken back.';

/** The command as an act; null where only a shell can carry it out. */
export function actOf({ label, argv }: Command): Act | null {
  const [program, verb, ...rest] = argv;
  if (program !== 'runnerctl') return null;
  const [node = '-', also, ...others] = rest;
  if (verb === 'retry' && !node.startsWith('-') && others.length === 0) {
    const retry: Steer = { action: 'retry', node };
    if (also === undefined) return act(label, [retry]);
    return also === '--resume' ? act(label, [retry, resume]) : null;
  }
  if (verb !== 'resume') return null;
  if (rest.length === 0) return act(label, [resume]);
  if (rest.length === 1 && rest[0] === '--now') return act(label, [{ ...resume, now: true }]);
  const more = Number(rest[1]);
  return rest.length === 2 && rest[0] === '--more' && Number.isInteger(more)
    ? act(label, [{ ...resume, more }])
    : null;
}

const note: Act = {
  label: 'Note to the next session',
  writes: 'What the next session is told',
  sure: FOR_GOOD,
  orders: (text) => [{ action: 'note', text }],
};

const over = ['completed', 'cancelled'];

/** Number of the iteration that waits for a person's review. */
export const awaited = (run: RunView): number | null => {
  const last = run.recent[0];
  return last?.verdict === 'Pending' && run.summary.needs_you ? last.iter : null;
};

/** What decides on an iteration that waits for a review. */
export const reviewOf = (iter: number): Act[] => [
  act('Approve', [{ action: 'approve', iter }], `Iteration ${iter} passes its task. ${FOR_GOOD}`),
  {
    label: 'Reject',
    writes: 'What is missing, and what you expect',
    sure: `The task is charged an attempt. ${FOR_GOOD}`,
    orders: (reason) => [{ action: 'reject', iter, reason }],
  },
];

/** What else can be done about a run, what continues it first. */
export function actsOf(run: RunView): Act[] {
  const { state, reason } = run.summary;
  const all = (reason?.commands ?? []).flatMap((command) => actOf(command) ?? []);
  // A run whose task has no attempts left refuses to be resumed.
  const [first] = all;
  const offered = first?.orders('')[0]?.action === 'retry' ? [first] : all;
  const pausing: Act[] =
    state !== 'running' || run.pending != null
      ? []
      : [
          act('Pause after this iteration', [{ action: 'pause', now: false }]),
          act(
            'Pause now',
            [{ action: 'pause', now: true }],
            'The session ends at once; its work is committed.',
          ),
        ];
  return [...offered, ...pausing, ...(over.includes(state) ? [] : [note])];
}

/** The act that answers a question. */
export const answerOf = (question: string, text: string): Act =>
  act('Send the answer', [{ action: 'answer', question, text }], FOR_GOOD);
