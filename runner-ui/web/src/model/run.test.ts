import { expect, test } from 'vitest';
import type { IterationView, RunView, StatusView } from '../wire';
import { entries, siftEntries } from './activity';
import {
  entriesOf,
  fullNameOf,
  grouped,
  groupOf,
  lookOf,
  nameOf,
  sorted,
  stateOf,
  summed,
  whereIs,
} from './overview';
import { remarks, whyOf } from './why';
import { isFailure, ofRun, ofVerdict } from './words';

const NEEDING = ['stuck', 'held', 'paused', 'limit'];
const run = (state: string, extra: Partial<RunView> = {}) =>
  ({
    summary: {
      id: 'x',
      state,
      needs_you: NEEDING.includes(state),
      reason: { message: 'why', command: 'runnerctl resume' },
    },
    ...extra,
  }) as RunView;
const status = (path: string, state: string | null, held = false) =>
  ({
    repo: { id: path, path, held: held ? { message: 'h' } : null, queue: [] },
    run: state === null ? null : run(state),
  }) as unknown as StatusView;
const last = { iter: 3, verdict: 'RedGuard' } as IterationView;

test('a run that continues needs no explanation unless something blocks it', () => {
  expect(whyOf(run('running'), last)).toBeNull();
  const phase = { obstacle: 'the disk is full' } as RunView['phase'];
  expect(whyOf(run('running', { phase }), last)).toMatchObject({ message: 'the disk is full' });
});

test('a run that stopped says why, what to type and what came last', () => {
  expect(whyOf(run('stuck'), last)).toMatchObject({
    message: 'why',
    ways: 'runnerctl resume',
    last,
    tone: 'bad',
  });
  expect(whyOf(run('completed'), last)).toMatchObject({ last: null, tone: 'good' });
  expect(whyOf(run('completed'), last)?.commands.map(({ argv }) => argv.join(' '))).toEqual([
    'runnerctl land --run x',
    'runnerctl deliver --run x',
    'runnerctl verify --run x',
  ]);
  expect(whyOf(run('waiting', { wait_until: '2026-01-01T00:00:00Z' }), null)).toMatchObject({
    until: '2026-01-01T00:00:00Z',
  });
});

test('remarks tell what somebody should know', () => {
  const notes = remarks(
    run('running', { baseline: 'fail', secrets: [{ path: 'a', variable: 'KEY' }], pending: 'pause' }),
  );
  expect(notes.map((note) => note.text)).toEqual([
    'The guard failed before the first session.',
    'a contains the secret KEY',
    'Pauses after this iteration.',
  ]);
});

test('repositories that need a person come first', () => {
  const all = [
    status('/a/done', 'completed'),
    status('/a/run', 'running'),
    status('/a/none', null),
    status('/a/bad', 'stuck'),
    status('/a/held', 'running', true),
  ];
  expect(sorted(all).map(nameOf)).toEqual(['bad', 'held', 'run', 'done', 'none']);
  expect(stateOf(all[4]!)).toBe('held');
  expect(summed(all).map(([look, count]) => [look.word, count])).toEqual([
    ['completed', 1],
    ['running', 1],
    ['stuck', 1],
    ['held', 1],
  ]);
});

test('the daemon says who needs a person, in other words and colours than who waits for a service', () => {
  const told = (state: string, needs_you: boolean) => {
    const view = run(state);
    const summary = { ...view.summary, needs_you };
    const one = { ...status('/a', state), run: { ...view, summary } };
    return [groupOf(one), lookOf(one)?.word, lookOf(one)?.tone];
  };
  expect(told('waiting', true)).toEqual(['needs', 'needs review', 'look']);
  expect(told('waiting', false)).toEqual(['goes', 'waiting for a service', 'wait']);
  expect(told('paused', true)).toEqual(['needs', 'paused', 'look']);
  expect(told('paused', false)).toEqual(['goes', 'paused', 'quiet']);
  expect(told('completed', false)).toEqual(['done', 'completed', 'good']);
  expect(whyOf(run('stuck'), null)?.title).toBe('Stuck: needs you');
});

test('isolated runs stand below their repository, which is where its most urgent run belongs', () => {
  const isolated = (id: string, state: string) =>
    ({
      repo: { id, path: `/w/${id}`, source: '/linked/proj', source_id: '/a/proj', queue: [] },
      run: { summary: { id: `run-${id}`, state, needs_you: NEEDING.includes(state) } },
    }) as unknown as StatusView;
  const all = [
    status('/a/other', 'running'),
    status('/a/proj', 'completed'),
    isolated('1', 'running'),
    isolated('2', 'stuck'),
  ];
  const found = grouped(entriesOf(all)).map(([group, members]) => [
    group,
    members.map(({ one, isolated }) => [nameOf(one), ...isolated.map(fullNameOf)]),
  ]);
  expect(found).toEqual([
    ['needs', [['proj', 'proj run-1', 'proj run-2']]],
    ['goes', [['other']]],
  ]);
  expect(whereIs(all, '/a/proj', 'run-2')).toBe('2');
  expect(whereIs(all, '/a/proj', 'x')).toBe('/a/proj');
  expect(grouped(entriesOf([isolated('3', 'stuck')]))).toHaveLength(1);
});

test('a state that this page does not know yet is shown by its word', () => {
  expect(ofRun('sleeping' as never)).toEqual({ icon: '?', word: 'sleeping', tone: 'quiet' });
  expect(ofVerdict('Odd' as never).word).toBe('Odd');
  expect(isFailure(last)).toBe(true);
});

const step = (what: string, text: string) =>
  ({ offset: 0, what, text }) as Parameters<typeof entries>[0][number];

test('what came of a tool stands with it', () => {
  const found = entries([
    step('tool', 'ls'),
    step('tool_result', 'a\nb'),
    step('tool_result', 'alone'),
    step('message', 'hi'),
  ]);
  expect(found.map((entry) => [entry.what, entry.text, entry.result])).toEqual([
    ['tool', 'ls', 'a\nb'],
    ['tool_result', 'alone', null],
    ['message', 'hi', null],
  ]);
});

test('a result does not repeat the command above it', () => {
  const found = entries([step('tool', 'just ci'), step('tool_result', 'exit code 0: just ci')]);
  expect(found[0]).toMatchObject({ result: 'exit code 0', failed: false });
});

test('what a tool has printed stands below how it ended', () => {
  const found = entries([
    step('tool', 'just ci'),
    step('tool_result', 'exit code 1: just ci\nFAIL: just ci'),
  ]);
  expect(found[0]?.result).toBe('exit code 1\nFAIL: just ci');
});

test('an answer is told in words', () => {
  const text = (said: string) => entries([step('message', said)])[0]?.text;
  expect(text('{"children":null,"status":"done","summary":"Four is IV."}')).toBe('done: Four is IV.');
  for (const other of ['{"a":1}', '{', 'So be it.']) expect(text(other)).toBe(other);
});

test('an exit code says more of a failure than words do', () => {
  const failed = (text: string) => entries([step('tool', 'x'), step('tool_result', text)])[0]!.failed;
  expect(['exit code 1', 'error: no', 'exited 0, was error'].map(failed)).toEqual([true, true, false]);
});

test('steps are narrowed down by text and by failure', () => {
  const all = entries([
    step('tool', 'make'),
    step('tool_result', 'exit code 2'),
    step('message', 'make it so'),
  ]);
  expect(siftEntries(all, 'MAKE', false).length).toBe(2);
  expect(siftEntries(all, 'make', true).length).toBe(1);
});
