import { expect, test } from 'vitest';
import { Api, Failure } from './api';

/** An API whose server answers the same to everything, and what it was asked. */
function answering(response: () => Response) {
  const asked: [string, RequestInit][] = [];
  const api = new Api(((path: string, init: RequestInit) => {
    asked.push([path, init]);
    return Promise.resolve(response());
  }) as typeof fetch);
  return { api, asked };
}

test('an error says what to type', async () => {
  const body = {
    error: { code: 'not_found', message: 'run x has no iteration 9', hint: 'runnerctl log', as_of: null },
  };
  const { api } = answering(() => new Response(JSON.stringify(body), { status: 404 }));
  await expect(api.repos()).rejects.toMatchObject({
    code: 'not_found',
    hint: 'runnerctl log',
    message: body.error.message,
  });
});

test('an answer that is no JSON is an error like any other', async () => {
  const { api } = answering(() => new Response('<html>', { status: 502 }));
  await expect(api.health()).rejects.toBeInstanceOf(Failure);
});

test('a server that is not there is told so', async () => {
  const api = new Api((() => Promise.reject(new TypeError('fetch failed'))) as typeof fetch);
  await expect(api.repos()).rejects.toMatchObject({ code: 'unreachable', hint: 'runnerctl ui' });
});

test('what stands in an address cannot leave its place', async () => {
  const { api, asked } = answering(() => new Response('{}'));
  await api.tree('../x', 'a&b');
  expect(asked[0]![0]).toBe('/api/repos/..%2Fx/tree?run=a%26b');
});

test('a part of a text tells how long the whole is, and whether it grows', async () => {
  const headers = { 'X-Runner-Size': '9', 'X-Runner-Complete': 'false' };
  const { api, asked } = answering(() => new Response('abc', { status: 206, headers }));
  const part = await api.part('/x', 2, 5);
  expect((asked[0]![1].headers as Record<string, string>).Range).toBe('bytes=2-4');
  expect([part.bytes.length, part.size, part.complete]).toEqual([3, 9, false]);
});

test('a text with nothing new is no error', async () => {
  const { api } = answering(
    () => new Response('{}', { status: 416, headers: { 'Content-Range': 'bytes */7' } }),
  );
  expect(await api.part('/x', 7, 9)).toMatchObject({ size: 7 });
});
