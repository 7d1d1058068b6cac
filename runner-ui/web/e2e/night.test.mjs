// The morning after a night with nine repositories: what is seen at once, what a question asks, what is on the clipboard.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { launch } from './browser.mjs';
import { night } from './night.mjs';
import { accessible, NARROW, open, overflows, WIDE } from './page.mjs';

const MIDDLE = { width: 1024, height: 768 };
const NEEDING = ['calc', 'manual', 'mobile', 'payment-gateway', 'roman', 'shop'];
let browser, home, address;
beforeAll(async () => {
  browser = await launch();
  home = await night();
  address = await home.view();
}, 120_000);
afterAll(async () => {
  await browser?.close();
  await home?.end();
});

/** Opens the overview; returns when each repository is there. */
async function overview(viewport) {
  const shown = await open(browser, await address(), { viewport });
  await expect.poll(() => shown.page.locator('.repo, .row').count(), { timeout: 20_000 }).toBe(9);
  return shown;
}

const bottom = async (locator) => {
  const { y, height } = await locator.boundingBox();
  return y + height;
};

test('who needs somebody is seen on the first screen, with why and what to copy', async () => {
  const { page, context, complaints } = await overview(WIDE);
  console.log(`nine repositories after ${Math.round(await page.evaluate(() => performance.now()))} ms`);
  const cards = page.locator('.repo.needs');
  await page.locator('.failing').waitFor();
  await page.getByText('Is a lower-case numeral').waitFor();
  expect((await cards.locator('h3').allTextContents()).map((name) => name.trim()).sort()).toEqual(NEEDING);
  for (const card of await cards.all()) expect(await bottom(card)).toBeLessThanOrEqual(WIDE.height);
  expect(await page.title()).toBe('(6) runner');
  await accessible(page, 'the morning');
  expect(await overflows(page)).toBe(false);
  expect(complaints).toEqual([]);
  await context.close();
});

test('on a smaller screen their names, states and goals are', async () => {
  const { page, context } = await overview(MIDDLE);
  for (const card of await page.locator('.repo.needs').all())
    for (const part of ['h3', '.state', '.goal'])
      expect(await bottom(card.locator(part))).toBeLessThanOrEqual(MIDDLE.height);
  expect(await overflows(page)).toBe(false);
  await context.close();
});

test('on a phone each is two lines, and all are seen', async () => {
  const { page, context } = await overview(NARROW);
  const rows = await page.locator('.row').all();
  for (const row of rows) {
    expect(await bottom(row)).toBeLessThanOrEqual(NARROW.height);
    // The goal has a line of its own, and is not squeezed beside the state.
    expect((await row.locator('.what').boundingBox()).width).toBeGreaterThan(250);
  }
  await accessible(page, 'the morning on a phone');
  expect(await overflows(page)).toBe(false);
  await context.close();
});

test('a card shows the one command that continues a stuck run, and copies it', async () => {
  const { page, context } = await overview(WIDE);
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  const card = page.locator('.repo', { has: page.getByRole('link', { name: 'calc' }) });
  const button = card.getByRole('button', { name: /^Copy the command/ });
  expect(await button.count()).toBe(1);
  await button.click();
  await expect
    .poll(() => page.evaluate(() => navigator.clipboard.readText()))
    .toBe(`runnerctl -C ${home.named.calc.repo} retry root.2 --resume`);
  await context.close();
});

test('the changes of a run are what git says of its branch', async () => {
  const { page, context } = await overview(WIDE);
  await page.getByRole('link', { name: 'calc' }).click();
  await page.getByRole('link', { name: 'Changes' }).click();
  await page.locator('.diff .row').first().waitFor();
  const { stdout } = await home.named.calc.git('diff', 'main', 'runner/calc-1', '--', '.', ':!.runner');
  const added = stdout.split('\n').filter((line) => /^\+(?!\+\+)/.test(line));
  expect(added.length).toBeGreaterThan(1);
  expect(await page.locator('.diff .row.add .code').allTextContents()).toEqual(
    added.map((line) => line.slice(1)),
  );
  expect(await page.locator('.diff .row.del').count()).toBe(0);
  await accessible(page, 'the changes of a run');
  await context.close();
});

test('who awaits a review is not said to continue', async () => {
  const { page, context } = await overview(WIDE);
  const card = page.locator('.repo', { has: page.getByRole('link', { name: 'shop' }) });
  await card.getByText('needs review').waitFor();
  await page.getByRole('link', { name: 'shop' }).click();
  await page.getByRole('heading', { name: 'Needs your review' }).waitFor();
  expect(await page.getByText('waiting for a service').count()).toBe(0);
  await context.close();
});

test('a headline that a phone has no room for goes on below', async () => {
  const { page, context } = await overview(NARROW);
  await page.getByRole('link', { name: 'roman' }).click();
  const headline = page.getByRole('heading', { level: 1, name: 'A command that converts Roman numerals' });
  await headline.waitFor();
  expect(await headline.evaluate((element) => element.scrollHeight <= element.clientHeight + 1)).toBe(true);
  expect(await overflows(page)).toBe(false);
  await context.close();
});
