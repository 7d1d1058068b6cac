import { expect, test } from 'vitest';
import { Api } from './api';
import { fetcherOf } from './file';
import type { RunFile } from './wire';

const file = {
  version: '1',
  made_at: '2026-01-02T03:04:05Z',
  repo: 'r1',
  run: 'calc',
  cuts: [],
  without_texts: ['1'],
  replies: {
    'run-state': { repo: { id: 'r1' }, run: { summary: { id: 'calc' } } },
    iterations: [{ iter: 1 }, { iter: 2 }],
    'iterations/2': { failures: [] },
    'iterations/2/activity': { steps: [{ offset: 0 }], next_offset: 9, complete: false },
  },
  texts: { 'iterations/2/guard.log': 'grün\nrot\n' },
} as unknown as RunFile;
const api = new Api(fetcherOf(file));

test('a file answers as a server does that shows one run', async () => {
  expect(await api.repos()).toEqual([file.replies['run-state']]);
  expect(await api.runs('r1')).toEqual([{ id: 'calc' }]);
  expect(await api.health()).toMatchObject({ static: true, connected: false });
  expect(await api.iterations('r1', 'calc', 2)).toEqual([{ iter: 2 }]);
  expect(await api.iteration('r1', 'calc', '2')).toEqual({ failures: [] });
});

test('texts are read in parts, by bytes', async () => {
  const address = api.textAddress('r1', 'calc', '2', 'guard.log');
  const { bytes, size, complete } = await api.part(address, 0, 5);
  expect([new TextDecoder().decode(bytes), size, complete]).toEqual(['grün', 10, true]);
  expect((await api.part(address, 10, 20)).bytes.length).toBe(0);
});

test('steps that are read once are not read again', async () => {
  expect(await api.activity('r1', 'calc', '2', 0)).toMatchObject({ steps: [{ offset: 0 }], complete: true });
  expect(await api.activity('r1', 'calc', '2', 9)).toMatchObject({ steps: [], complete: true });
});

test('what a file does not hold is told apart from what was never there', async () => {
  const code = (iter: string) =>
    api
      .part(api.textAddress('r1', 'calc', iter, 'diff'), 0, 9)
      .catch((error: { code: string }) => error.code);
  expect([await code('1'), await code('2')]).toEqual(['left_out', 'not_found']);
  await expect(api.tree('r2')).rejects.toMatchObject({ message: 'this file holds run calc alone' });
  await expect(api.tree('r1', 'other')).rejects.toMatchObject({ code: 'not_found' });
});
