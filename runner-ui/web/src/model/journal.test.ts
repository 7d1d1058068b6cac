import { expect, test } from 'vitest';
import { journal } from './journal';

test('an event is told with its time and what is known of it', () => {
  const lines = [
    '{"at":"2026-01-01T00:00:00.5Z","event":{"opened":{"iter":3,"from":"ab","history":null,"paths":[]}}}',
    '{"at":"2026-01-01T00:00:01Z","event":"briefed"}',
    '{"at":"2026-01-01T00:00:02Z","event":{"guard_ended":{"how":{"exited":1}}}}',
    '',
  ];
  expect(journal(lines)).toEqual([
    { at: Date.parse('2026-01-01T00:00:00.5Z'), name: 'opened', details: ['iter: 3', 'from: ab'] },
    { at: Date.parse('2026-01-01T00:00:01Z'), name: 'briefed', details: [] },
    { at: Date.parse('2026-01-01T00:00:02Z'), name: 'guard_ended', details: ['how: {"exited":1}'] },
  ]);
});

test('what is no event is shown as it is', () => {
  for (const line of ['{', '[]', 'null', '{"event":{}}', '{"event":7}']) {
    expect(journal([line])).toEqual([{ at: null, name: line, details: [] }]);
  }
});
