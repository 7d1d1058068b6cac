// The page by keys alone: what moves, what opens and what leads back; where the focus is, and what is said when copied.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { launch } from './browser.mjs';
import { accessible, NARROW, open, overflows, WIDE } from './page.mjs';
import { within } from './standin.mjs';
import { large, morning, small } from './worlds.mjs';

let browser;
beforeAll(async () => void (browser = await launch()));
afterAll(() => browser?.close());

const RUN = '#/repo/r2/run/calc-77aa';

async function at(world, place, act, viewport = WIDE) {
  await within(world, async ({ url }) => {
    const { page, context, complaints } = await open(browser, url + place, { viewport });
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    await act(page);
    expect(complaints).toEqual([]);
    await context.close();
  });
}

const press = async (page, ...keys) => {
  for (const key of keys) await page.keyboard.press(key);
};
const focused = (page) => page.evaluate(() => document.activeElement.textContent.trim());
const isLost = (page) => page.evaluate(() => document.activeElement === document.body);

test.each([WIDE, NARROW])('repositories are gone through, opened and left by keys, %o', async (viewport) => {
  await at(
    small(),
    '',
    async (page) => {
      await page.locator('[data-item]').first().waitFor();
      const names = await page.locator('[data-item]').allInnerTexts();
      await press(page, 'j');
      expect(await focused(page)).toBe(names[0]);
      await press(page, 'j', 'j', 'k');
      expect(await focused(page)).toBe(names[1]);
      await press(page, 'Enter');
      await page.locator('.run .head').waitFor();
      await expect.poll(() => isLost(page)).toBe(false);
      await press(page, 'Escape');
      await page.getByRole('heading', { name: 'Repositories' }).waitFor();
      await expect.poll(() => focused(page)).toBe(names[1]);
    },
    viewport,
  );
});

test('tasks, attempts and iterations are gone through, and Escape leads back', async () => {
  await at(morning(), RUN, async (page) => {
    await page.getByRole('treeitem').first().waitFor();
    await press(page, 'j', 'Home', 'j', 'j');
    expect(await page.locator('.focused .title').textContent()).toBe('Tokens');
    await press(page, 'Enter');
    await page.getByRole('heading', { name: 'Tokens' }).waitFor();
    await page.locator('.attempt').first().focus();
    await press(page, 'j', 'Enter');
    await page.getByRole('heading', { name: 'Iteration 29' }).waitFor();
    await expect.poll(() => isLost(page)).toBe(false);
    await press(page, 'Escape');
    await page.getByRole('heading', { name: 'Tokens' }).waitFor();
    await press(page, 'Escape');
    await page.waitForURL(/calc-77aa$/);
    await expect.poll(() => isLost(page)).toBe(false);
  });
});

test('a slash leads to the search, and Escape out of it', async () => {
  await at(large(), '', async (page) => {
    await page.locator('.row').first().waitFor();
    await press(page, '/');
    await page.keyboard.type('jk?/');
    expect(await page.getByLabel('Filter repositories').inputValue()).toBe('jk?/');
    await press(page, 'Escape');
    expect(await isLost(page)).toBe(false);
    await page.goto(page.url().replace(/#.*$/, '') + '#/repo/big/run/large-1');
    await page.getByRole('treeitem').first().waitFor();
    await press(page, '/');
    await page.getByRole('combobox', { name: /Go to/ }).waitFor();
  });
});

test.each([WIDE, NARROW])('a sheet tells the keys, %o', async (viewport) => {
  await at(
    small(),
    '',
    async (page) => {
      const link = page.locator('[data-item]').first();
      await link.focus();
      await press(page, '?');
      const sheet = page.getByRole('dialog', { name: 'Keys' });
      await sheet.getByText('Search what is shown').waitFor();
      await accessible(page, 'the sheet of keys');
      expect(await overflows(page)).toBe(false);
      await press(page, 'j', 'Escape');
      expect(await sheet.isVisible()).toBe(false);
      expect(await link.evaluate((element) => element === document.activeElement)).toBe(true);
    },
    viewport,
  );
});

test.each([WIDE, NARROW])('what was copied is said in full, and moves nothing, %o', async (viewport) => {
  await at(
    morning(),
    RUN,
    async (page) => {
      const button = page.locator('.why button').first();
      await button.waitFor();
      await page.getByRole('treeitem').first().waitFor();
      const places = () =>
        page
          .locator('main *:visible')
          .evaluateAll((all) => all.map((one) => Object.values(one.getBoundingClientRect().toJSON())));
      const before = await places();
      await button.focus();
      await press(page, 'Enter');
      const line = 'runnerctl -C /home/ada/src/calc retry parser.lex --resume';
      const said = page.getByRole('status').filter({ hasText: `Copied: ${line}` });
      await said.waitFor();
      expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(line);
      expect(await places()).toEqual(before);
      const { x, width } = await said.boundingBox();
      expect(x).toBeGreaterThanOrEqual(0);
      expect(x + width).toBeLessThanOrEqual(viewport.width);
      expect(await button.evaluate((element) => element === document.activeElement)).toBe(true);
      await accessible(page, 'copied');
      await said.waitFor({ state: 'hidden' });
    },
    viewport,
  );
});

test('a button that goes away leaves the focus near by', async () => {
  const world = morning();
  const [first] = world.found.iterations;
  world.found.iterations = Array.from({ length: 40 }, (_, n) => ({ ...first, iter: n + 1 }));
  await at(world, `${RUN}/node/parser.lex`, async (page) => {
    const all = page.getByRole('button', { name: 'Show all 40' });
    await all.focus();
    await press(page, 'Enter');
    await all.waitFor({ state: 'detached' });
    await expect
      .poll(() => page.evaluate(() => document.activeElement.getAttribute('aria-label')))
      .toBe('Task');
  });
});
