import { expect, test } from 'vitest';
import { Refresher } from './refresh';

/** A reading that ends when the test says so. */
function gated() {
  const begun: (() => void)[] = [];
  const waiting: (() => void)[] = [];
  const read = () =>
    new Promise<void>((resolve) => {
      waiting.push(resolve);
      begun.shift()?.();
    });
  return { read, waiting, next: () => new Promise<void>((resolve) => begun.push(resolve)) };
}

test('what becomes stale while it is read is read once more, and never twice at a time', async () => {
  const { read, waiting, next } = gated();
  const refresher = new Refresher<'x'>(() => undefined);
  refresher.knows('x', read);
  const first = next();
  refresher.need('x');
  await first;
  refresher.need('x');
  refresher.need('x');
  expect(waiting.length).toBe(1);
  const second = next();
  waiting[0]!();
  await second;
  expect(waiting.length).toBe(2);
  refresher.end();
  waiting[1]!();
});

test('a reading that fails is told and does not keep the next one from being tried', async () => {
  const failures: unknown[] = [];
  let tries = 0;
  const refresher = new Refresher<'x'>((error) => failures.push(error));
  await new Promise<void>((resolve) => {
    refresher.knows('x', async () => {
      tries += 1;
      if (tries === 1) {
        refresher.need('x');
        throw new Error('no');
      }
      resolve();
    });
    refresher.need('x');
  });
  expect([tries, failures.length]).toEqual([2, 1]);
});
