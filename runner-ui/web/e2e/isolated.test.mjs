// Isolated runs on the page: below the repository that they were begun from, where they need somebody too, and followed by
// whoever comes to them from there.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { launch } from './browser.mjs';
import { accessible, NARROW, open, overflows, WIDE } from './page.mjs';
import { within } from './standin.mjs';
import { small, status } from './worlds.mjs';

let browser;
beforeAll(async () => void (browser = await launch()));
afterAll(() => browser?.close());

const MIDDLE = { width: 1024, height: 768 };

/** A repository without a run in its work tree and two isolated ones, the second of which is stuck. */
function isolated() {
  const world = small();
  const source = '/home/ada/src/roman';
  const workspace = (id, run, state, extra) => {
    const one = status(
      id,
      `/home/ada/.local/state/runnerd/workspaces/0123456789ab/${run}`,
      run,
      state,
      extra,
    );
    return { ...one, repo: { ...one.repo, source, source_id: 'r1' } };
  };
  const repos = world.repos.filter((one) => one.repo.id === 'r1' || one.repo.id === 'r3');
  repos[0] = { ...repos[0], run: null, repo: { ...repos[0].repo, queue: [] } };
  repos.splice(
    1,
    0,
    workspace('w1', 'tidy', 'running', { goal: 'Tidy the parser', leaves_passed: 1, leaves_total: 3 }),
    workspace('w2', 'port', 'stuck', {
      goal: 'Port the store',
      reason: {
        message: 'store.sqlite has used all of its 3 attempts',
        command: 'runnerctl retry store.sqlite --resume',
        commands: [{ label: 'Retry the task', argv: ['runnerctl', 'retry', 'store.sqlite', '--resume'] }],
      },
    }),
  );
  return {
    ...world,
    repos,
    of: (id) => ({ ...world.found, status: repos.find((one) => one.repo.id === id) ?? null }),
  };
}

test.each([WIDE, MIDDLE, NARROW])(
  'isolated runs are in the card of their repository, which is where the one belongs that needs somebody, %o',
  async (viewport) => {
    await within(isolated(), async ({ url }) => {
      const { page, context } = await open(browser, url, { viewport });
      const card = page.locator('.repo').first();
      // A phone has a line for each, unless cards are asked for.
      if (viewport === NARROW) await page.getByRole('button', { name: 'Dense', pressed: true }).click();
      await card.waitFor();
      expect(await page.locator('.repo').count()).toBe(2);
      expect(await page.title()).toBe('(1) runner');
      const around = await card.boundingBox();
      const runs = card.locator('.isolated li');
      expect(await runs.locator('a').allInnerTexts()).toEqual(['tidy', 'port']);
      for (const at of [0, 1]) {
        const run = await runs.nth(at).boundingBox();
        expect(run.x).toBeGreaterThanOrEqual(around.x);
        expect(run.x + run.width).toBeLessThanOrEqual(around.x + around.width);
        expect(run.y + run.height).toBeLessThanOrEqual(around.y + around.height);
      }
      expect(await runs.nth(0).innerText()).not.toContain('retry');
      expect(await runs.nth(1).innerText()).toContain('store.sqlite has used all');
      expect(await overflows(page)).toBe(false);
      await accessible(page, 'isolated runs');
      await context.close();
    });
  },
);

test('in the dense list isolated runs are lines below the line of their repository', async () => {
  await within(isolated(), async ({ url }) => {
    const { page, context } = await open(browser, url);
    await page.getByRole('button', { name: 'Dense' }).click();
    const names = page.locator('.row .name');
    expect(await names.allInnerTexts()).toEqual(['roman', 'tidy', 'port', 'website']);
    const left = await Promise.all([0, 1, 2].map(async (at) => (await names.nth(at).boundingBox()).y));
    expect(left).toEqual([...left].sort((a, b) => a - b));
    await context.close();
  });
});

test('whoever comes to an isolated run from its repository is shown both, and what happens in the workspace', async () => {
  await within(isolated(), async ({ url, emit, answered }) => {
    const { page, context } = await open(browser, `${url}#/repo/r1/run/tidy`);
    await page.locator('.run .head').waitFor();
    expect(await page.locator('header .crumb').allInnerTexts()).toEqual(['roman', 'tidy']);
    expect(await page.title()).toContain('roman tidy');
    const before = answered();
    emit('tree_changed', {
      seq: 2,
      time: new Date().toISOString(),
      repo: 'w1',
      run: 'tidy',
      iter: 1,
      kind: 'tree',
      data: { leaves_passed: 2, leaves_total: 3 },
    });
    await expect.poll(answered).toBeGreaterThan(before);
    await context.close();
  });
});
