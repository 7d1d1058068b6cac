// Finding one's way: the palette, the timeline by parents, and what is said when another version serves.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { launch } from './browser.mjs';
import { accessible, NARROW, open, overflows, WIDE } from './page.mjs';
import { standIn } from './standin.mjs';
import { HOSTILE, large, morning, small } from './worlds.mjs';

let browser;
beforeAll(async () => void (browser = await launch()));
afterAll(() => browser?.close());

const RUN = '#/repo/r1/run/roman-1a2b3c4d';

async function within(world, place, act, options) {
  const server = await standIn(world);
  const { page, context, complaints } = await open(browser, server.url + place, options);
  try {
    await act({ page, server });
    expect(complaints).toEqual([]);
  } finally {
    await context.close();
    await server.close();
  }
}

test.each([WIDE, NARROW])(
  'a few words and Enter lead to a task, and the focus comes back, %o',
  async (viewport) => {
    await within(
      small(),
      RUN,
      async ({ page }) => {
        await page.getByRole('treeitem').first().waitFor();
        await page.keyboard.press('Control+k');
        const field = page.getByRole('combobox', { name: /Go to/ });
        await expect.poll(() => field.evaluate((element) => element === document.activeElement)).toBe(true);
        const box = await page.getByRole('dialog').boundingBox();
        expect(box.x).toBeGreaterThanOrEqual(0);
        expect(box.x + box.width).toBeLessThanOrEqual(viewport.width);
        await page.keyboard.type('refuse neither');
        const first = page.getByRole('option').first();
        await first.getByText('Refuse what is neither', { exact: true }).waitFor();
        expect(await first.getAttribute('aria-selected')).toBe('true');
        await accessible(page, 'the palette');
        await page.keyboard.press('Enter');
        await page.getByRole('heading', { name: 'Refuse what is neither' }).waitFor();
        expect(await page.getByRole('dialog').count()).toBe(0);
        expect(await overflows(page)).toBe(false);
      },
      { viewport },
    );
  },
);

test('a line of a log is found, and opens in view', async () => {
  await within(morning(), '#/repo/r2/run/calc-77aa', async ({ page }) => {
    await page.getByRole('treeitem').first().waitFor();
    await page.keyboard.press('Control+k');
    await page.keyboard.type('expected an error');
    await page.keyboard.press('Shift+Enter');
    const line = page.getByRole('option').filter({ hasText: 'expected an error, got 3' }).first();
    await line.waitFor();
    await line.click();
    await page.waitForURL(/iter\/\d+\/guard\?L182$/);
    await page.locator('.line.target', { hasText: 'expected an error' }).waitFor();
  });
});

test('Escape closes the palette and the focus is where it was', async () => {
  await within(small(), RUN, async ({ page }) => {
    const section = page.getByRole('link', { name: 'Timeline' });
    await section.focus();
    await page.keyboard.press('Control+k');
    await page.getByRole('dialog').waitFor();
    await page.keyboard.press('Escape');
    await expect.poll(() => section.evaluate((element) => element === document.activeElement)).toBe(true);
  });
});

test('2,000 iterations are surveyed by their parents, and unfold', async () => {
  await within(large(), '#/repo/big/run/large-1/timeline', async ({ page }) => {
    await page.locator('.timeline .bar').first().waitFor();
    const heads = page.locator('.timeline .row.head');
    // No line but has bars: the survey is no empty diagonal.
    const bars = await page
      .locator('.timeline .row')
      .evaluateAll((rows) => rows.map((row) => row.querySelectorAll('a .bar').length));
    expect(Math.min(...bars)).toBeGreaterThan(0);
    const before = await page.locator('.timeline .row').count();
    const first = heads.first().getByRole('button');
    expect(await first.getAttribute('aria-expanded')).toBe('false');
    await first.click();
    expect(await first.getAttribute('aria-expanded')).toBe('true');
    await expect.poll(() => page.locator('.timeline .row .inner').count()).toBeGreaterThan(0);
    expect(before).toBeGreaterThan(1);
    await page.getByRole('button', { name: 'Longest path' }).click();
    await page.locator('.timeline .path a').first().waitFor();
    await accessible(page, 'the timeline by parents');
  });
});

test('cost has its ceiling as a line, and each day its sum', async () => {
  const world = small();
  world.found.config.settings.push({ key: 'max_cost_usd', value: '25.0', origin: 'file', place: null });
  await within(world, `${RUN}/plots`, async ({ page }) => {
    const figure = page.getByRole('figure', { name: 'Cost', exact: true });
    await figure.locator('.goal').waitFor({ state: 'attached' });
    await figure.getByText('of $25', { exact: false }).waitFor();
    const days = page.getByRole('figure', { name: 'Cost by day' });
    expect(await days.locator('.list li').count()).toBeGreaterThan(0);
  });
});

test('tasks are called by their titles where the runner names them by id, and hostile ones stay text', async () => {
  const world = morning();
  world.found.status.run.node.title = HOSTILE;
  world.found.tree.tree.root.children[0].children[0].title = HOSTILE;
  world.repos[1].run.summary.reason.message = 'task parser.lex has used its 3 attempts';
  await within(world, '#/repo/r2/run/calc-77aa', async ({ page }) => {
    const said = page.locator('.why .words').first();
    await expect.poll(() => said.textContent()).toContain('<img src=x onerror=');
    expect(await said.textContent()).not.toContain('parser.lex');
    expect(await page.evaluate(() => window.pwned)).toBeUndefined();
  });
});

test('a server of another version has the page loaded again', async () => {
  const world = small();
  await within(world, RUN, async ({ page, server }) => {
    await page.getByText('live', { exact: true }).waitFor();
    world.health = { ...world.health, version: '0.2.0' };
    server.cut();
    await page.getByRole('alert').getByRole('button', { name: 'Load it again' }).click();
    await page.getByText('live', { exact: true }).waitFor();
    expect(await page.getByRole('alert').count()).toBe(0);
  });
});
