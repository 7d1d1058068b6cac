import { expect, test } from 'vitest';
import type { RunView } from '../wire';
import { actOf, actsOf, awaited } from './steer';

const run = (state: string, extra: Partial<RunView> = {}, commands: string[][] = []): RunView =>
  ({
    summary: {
      state,
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
const ordered = (...argv: string[]) => actOf({ label: 'l', argv })?.order('') ?? null;

test('only commands whose every word is understood are carried out by the page', () => {
  expect(ordered('runnerctl', 'resume')).toEqual({ action: 'resume', now: false, more: null });
  expect(ordered('runnerctl', 'resume', '--now')).toEqual({ action: 'resume', now: true, more: null });
  expect(ordered('runnerctl', 'resume', '--more', '20')).toEqual({ action: 'resume', now: false, more: 20 });
  expect(ordered('runnerctl', 'retry', 'parser.lex')).toEqual({ action: 'retry', node: 'parser.lex' });
  for (const argv of [
    ['runnerctl', 'resume', '--yes'],
    ['runnerctl', 'resume', '--run', 'other'],
    ['runnerctl', 'resume', '--more', 'x'],
    ['runnerctl', 'retry'],
    ['runnerctl', 'retry', '--resume'],
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
        ['runnerctl', 'retry', 'a'],
        ['runnerctl', 'edit'],
      ]),
    ),
  ).toEqual(['runnerctl retry a', 'Note to the next session']);
  expect(labels(run('completed'))).toEqual([]);
});

test('a review is of the iteration that is shown, and is asked for once more', () => {
  const waiting = run('paused', { recent: [{ iter: 7, verdict: 'Pending' }] as RunView['recent'] });
  expect(awaited(waiting)).toBe(7);
  const [approve, reject] = actsOf(waiting);
  expect(approve?.order('')).toEqual({ action: 'approve', iter: 7 });
  expect(reject?.order('Untested')).toEqual({ action: 'reject', iter: 7, reason: 'Untested' });
  expect([approve?.sure, reject?.sure].every((text) => text?.includes('cannot be taken back'))).toBe(true);
  expect(
    awaited(run('running', { recent: [{ iter: 7, verdict: 'Pending' }] as RunView['recent'] })),
  ).toBeNull();
});
