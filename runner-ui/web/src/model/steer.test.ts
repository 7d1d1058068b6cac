import { expect, test } from 'vitest';
import type { RunView } from '../wire';
import { actOf, actsOf, awaited, reviewOf } from './steer';

const run = (state: string, extra: Partial<RunView> = {}, commands: string[][] = []): RunView =>
  ({
    summary: {
      state,
      needs_you: state !== 'running' && state !== 'completed',
      reason: {
        message: 'm',
        command: null,
        commands: commands.map((argv) => ({ label: argv.join(' '), argv })),
      },
    },
    recent: [],
    pending: null,
    ...extra,
  }) as unknown as RunView;
const labels = (view: RunView) => actsOf(view).map((one) => one.label);
const ordered = (...argv: string[]) => actOf({ label: 'l', argv })?.orders('') ?? null;

test('only commands whose every word is understood are carried out by the page', () => {
  expect(ordered('runnerctl', 'resume')).toEqual([{ action: 'resume', now: false, more: null }]);
  expect(ordered('runnerctl', 'resume', '--now')).toEqual([{ action: 'resume', now: true, more: null }]);
  expect(ordered('runnerctl', 'resume', '--more', '20')).toEqual([
    { action: 'resume', now: false, more: 20 },
  ]);
  expect(ordered('runnerctl', 'retry', 'parser.lex')).toEqual([{ action: 'retry', node: 'parser.lex' }]);
  expect(ordered('runnerctl', 'retry', 'parser.lex', '--resume')).toEqual([
    { action: 'retry', node: 'parser.lex' },
    { action: 'resume', now: false, more: null },
  ]);
  for (const argv of [
    ['runnerctl', 'resume', '--yes'],
    ['runnerctl', 'resume', '--run', 'other'],
    ['runnerctl', 'resume', '--more', 'x'],
    ['runnerctl', 'retry'],
    ['runnerctl', 'retry', '--resume'],
    ['runnerctl', 'retry', 'a', '--yes'],
    ['runnerctl', 'cancel'],
    ['git', 'switch', 'main'],
    ['rm', 'resume'],
  ])
    expect(ordered(...argv), argv.join(' ')).toBeNull();
});

test('a run is paused while it works, and brought on where it stands', () => {
  expect(labels(run('running'))).toEqual([
    'Pause after this iteration',
    'Pause now',
    'Note to the next session',
  ]);
  expect(labels(run('running', { pending: 'pause' }))).toEqual(['Note to the next session']);
  expect(
    labels(
      run('stuck', {}, [
        ['runnerctl', 'retry', 'a', '--resume'],
        ['runnerctl', 'edit'],
        ['runnerctl', 'resume'],
      ]),
    ),
  ).toEqual(['runnerctl retry a --resume', 'Note to the next session']);
  expect(labels(run('completed'))).toEqual([]);
});

test('a review is of the iteration that is shown, and is asked for once more', () => {
  const waiting = run('paused', { recent: [{ iter: 7, verdict: 'Pending' }] as RunView['recent'] });
  expect(awaited(waiting)).toBe(7);
  const [approve, reject] = reviewOf(7);
  expect(approve?.orders('')).toEqual([{ action: 'approve', iter: 7 }]);
  expect(reject?.orders('Untested')).toEqual([{ action: 'reject', iter: 7, reason: 'Untested' }]);
  expect([approve?.sure, reject?.sure].every((text) => text?.includes('cannot be taken back'))).toBe(true);
  expect(
    awaited(run('running', { recent: [{ iter: 7, verdict: 'Pending' }] as RunView['recent'] })),
  ).toBeNull();
});
