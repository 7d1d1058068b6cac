import { expect, test } from 'vitest';
import { pause, Reader, Stream, type Link, type Message } from './events';

test('events are put together from pieces of any size', () => {
  const text =
    ': hi\nretry: 500\nid: 7\nevent: tree_changed\ndata: {"a":\ndata: 1}\n\nevent: x\r\ndata: y\r\n\r\n';
  for (const width of [1, 2, 3, 7, text.length]) {
    const reader = new Reader();
    const found: Message[] = [];
    for (let at = 0; at < text.length; at += width) found.push(...reader.take(text.slice(at, at + width)));
    expect(found).toEqual([
      { id: '7', event: 'tree_changed', data: '{"a":\n1}' },
      { id: '7', event: 'x', data: 'y' },
    ]);
  }
});

test('an event without end does not fill the memory', () => {
  const reader = new Reader();
  expect(() => {
    for (let at = 0; at < 100; at += 1) reader.take('x'.repeat(100_000));
  }).toThrow();
});

test('pauses grow and have an end', () => {
  expect([0, 1, 2, 9, 99].map(pause)).toEqual([500, 1000, 2000, 10_000, 10_000]);
});

/** Answers with one event per connection and ends it; tells what it was asked with. */
function server(connections: number, done: () => void) {
  const asked: (string | undefined)[] = [];
  const fetcher = ((_: string, init: RequestInit) => {
    asked.push((init.headers as Record<string, string>)['Last-Event-ID']);
    if (asked.length >= connections) done();
    return Promise.resolve(new Response(`id: ${asked.length}\nevent: e\ndata: {}\n\n`));
  }) as typeof fetch;
  return { asked, fetcher };
}

test('a stream that is cut goes on behind the last event that was heard', async () => {
  const links: Link[] = [];
  const ids: (string | null)[] = [];
  await new Promise<void>((resolve) => {
    const { asked, fetcher } = server(2, () => {
      stream.stop();
      expect(asked).toEqual([undefined, '1']);
      resolve();
    });
    const stream = new Stream(
      { message: (message) => ids.push(message.id), link: (link) => links.push(link) },
      fetcher,
    );
    stream.listen('/events');
  });
  expect(ids[0]).toBe('1');
  expect(links.slice(0, 3)).toEqual(['connecting', 'live', 'reconnecting']);
});

test('a reader that stops and begins again at once has one stream', async () => {
  let open = 0;
  const fetcher = ((_: string, init: RequestInit) => {
    open += 1;
    return new Promise<Response>((_, reject) => {
      init.signal?.addEventListener('abort', () => ((open -= 1), reject(new Error('aborted'))));
    });
  }) as typeof fetch;
  const stream = new Stream({ message: () => undefined, link: () => undefined }, fetcher);
  stream.listen('/events');
  stream.listen(null);
  stream.listen('/events');
  await new Promise((resolve) => setTimeout(resolve));
  expect(open).toBe(1);
  stream.stop();
  expect(open).toBe(0);
});
