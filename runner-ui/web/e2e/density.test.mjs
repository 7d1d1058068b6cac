// Room is for what differs: banners, paths, costs and figures by their geometry.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { launch } from './browser.mjs';
import { accessible, NARROW, open, overflows, WIDE } from './page.mjs';
import { within } from './standin.mjs';
import { morning, small, status } from './worlds.mjs';

let browser;
beforeAll(async () => void (browser = await launch()));
afterAll(() => browser?.close());

const box = (locator) => locator.boundingBox();

async function at(world, place, act, viewport = WIDE) {
  await within(world, async ({ url }) => {
    const { page, context, complaints } = await open(browser, url + place, { viewport });
    await act(page);
    await accessible(page, place);
    expect(await overflows(page)).toBe(false);
    expect(complaints).toEqual([]);
    await context.close();
  });
}

test.each([
  [WIDE, 140],
  [NARROW, 330],
])('the reason leaves room for the tasks, %o', async (viewport, most) => {
  await at(
    morning(),
    '#/repo/r2/run/calc-77aa',
    async (page) => {
      await page.getByText('not ok 181').waitFor();
      expect((await box(page.locator('.why'))).height).toBeLessThan(most);
    },
    viewport,
  );
});

test('the time stands on the line of what is worked on', async () => {
  await at(small(), '#/repo/r1/run/roman-1a2b3c4d', async (page) => {
    const work = page.locator('.work');
    await work.getByText(/1m \d\ds of 30m 00s/).waitFor();
    expect((await box(work)).height).toBeLessThan(28);
  });
});

test.each([WIDE, NARROW])('figures of attempts stand below each other, %o', async (viewport) => {
  await at(
    morning(),
    '#/repo/r2/run/calc-77aa/node/parser.lex',
    async (page) => {
      await page.locator('.attempt').first().waitFor();
      const columns = await page
        .locator('.attempt')
        .evaluateAll((rows) =>
          [0, 1, 2].map((at) => [
            ...new Set(
              rows.map((row) =>
                Math.round([...row.querySelectorAll('.small.num')][at].getBoundingClientRect().right),
              ),
            ),
          ]),
        );
      for (const ends of columns) expect(ends).toHaveLength(1);
    },
    viewport,
  );
});

test('a folder is told only where names are the same, and no cost where none is known', async () => {
  const world = small();
  const unknown = { sessions: 3, cost_unknown: 3 };
  world.repos.push(status('r9', '/srv/other/calc', 'calc-2', 'running', { usage: unknown }));
  await at(world, '', async (page) => {
    await page.locator('.repo').first().waitFor();
    expect((await page.locator('.folder').allInnerTexts()).filter(Boolean).sort()).toEqual([
      '/home/ada/src',
      '/srv/other',
    ]);
    expect(await page.getByText('unknown').count()).toBe(0);
    await page.getByRole('button', { name: 'Dense' }).click();
    expect(await page.locator('.row .folder').count()).toBe(2);
  });
});

test('how old the page is has room on a phone', async () => {
  const world = small();
  await within(world, async (server) => {
    const { page, context } = await open(browser, 'about:blank', { viewport: NARROW });
    await page.clock.install();
    await page.goto(server.url + '#/repo/r1/run/roman-1a2b3c4d');
    await page.locator('header').getByText('live', { exact: true }).waitFor();
    world.down = true;
    server.cut();
    await page.locator('header').getByText('reconnecting').waitFor();
    await page.clock.fastForward('12:05');
    await page
      .locator('header')
      .getByText(/1[2-9]m \d\ds/)
      .waitFor();
    expect(await overflows(page)).toBe(false);
    await context.close();
  });
});

test('plots of which nothing is known are not drawn', async () => {
  const world = small();
  for (const view of world.found.iterations) view.usage = { sessions: 1, cost_unknown: 1, tokens_unknown: 1 };
  await at(world, '#/repo/r1/run/roman-1a2b3c4d/plots', async (page) => {
    await page.getByRole('figure', { name: 'Leaves that pass' }).waitFor();
    expect(await page.getByRole('figure').evaluateAll((all) => all.map((one) => one.ariaLabel))).toEqual([
      'Leaves that pass',
      'Time by phase',
    ]);
  });
});
