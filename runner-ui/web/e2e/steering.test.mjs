// Steering from the page: who may, what is asked once more, where the focus is, and what is sent.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { launch } from './browser.mjs';
import { accessible, NARROW, open, overflows, WIDE } from './page.mjs';
import { standIn } from './standin.mjs';
import { morning, small, steering } from './worlds.mjs';

let browser;
beforeAll(async () => void (browser = await launch()));
afterAll(() => browser?.close());

const RUN = '#/repo/r2/run/calc-77aa';
const focused = (page) => page.evaluate(() => document.activeElement?.textContent?.trim());

/** Opens a place by an address, as the terminal prints it. */
async function by(world, place, act, options) {
  const server = await standIn(world);
  const { page, context, complaints } = await open(browser, `${server.url}${place}&token=look`, options);
  try {
    await act({ page, context, server });
    expect(complaints).toEqual([]);
  } finally {
    await context.close();
    await server.close();
  }
}

test('a server that only looks shows nothing that steers', async () => {
  await by({ ...morning(), token: 'look' }, RUN, async ({ page }) => {
    await page.locator('#why-title').waitFor();
    expect(await page.getByRole('group', { name: 'Steer this run' }).count()).toBe(0);
    expect(await page.getByText('may steer').count()).toBe(0);
  });
});

test.each([WIDE, NARROW])('what brings a stuck run on is done where it stands, %o', async (viewport) => {
  const world = steering(morning());
  await by(
    world,
    RUN,
    async ({ page }) => {
      const acts = page.getByRole('group', { name: 'Steer this run' });
      await acts.getByRole('button', { name: 'Retry the task' }).click();
      await acts.getByText('✔ it is done').waitFor();
      // A run whose task has no attempts left refuses this alone.
      expect(await acts.getByRole('button', { name: 'Continue the run' }).count()).toBe(0);
      await expect
        .poll(() => world.orders)
        .toEqual([
          { action: 'retry', node: 'parser.lex' },
          { action: 'resume', now: false, more: null },
        ]);
      expect(await overflows(page)).toBe(false);
      await accessible(page, 'a run that can be steered');
    },
    { viewport },
  );
});

test('a note is written, asked for once more, and sent', async () => {
  const world = steering(morning());
  await by(world, RUN, async ({ page }) => {
    const acts = page.getByRole('group', { name: 'Steer this run' });
    await acts.getByRole('button', { name: 'Note to the next session' }).click();
    const box = acts.getByLabel('What the next session is told');
    await expect.poll(() => box.evaluate((element) => element === document.activeElement)).toBe(true);
    await box.fill('Use <b>sqlx</b>');
    await acts.getByRole('button', { name: 'Note to the next session' }).click();
    await acts.getByText('cannot be taken back').waitFor();
    expect(world.orders).toBeUndefined();
    // Escape leads back, and the focus with it.
    await page.keyboard.press('Escape');
    await expect.poll(() => focused(page)).toBe('Note to the next session');
    await page.keyboard.press('Enter');
    expect(await box.inputValue()).toBe('Use <b>sqlx</b>');
    await acts.getByRole('button', { name: 'Note to the next session' }).click();
    await page.keyboard.press('Enter');
    await expect.poll(() => world.orders).toEqual([{ action: 'note', text: 'Use <b>sqlx</b>' }]);
  });
});

test('a refusal stands where it was asked for', async () => {
  const world = steering(morning());
  world.refuses = 'the run is <i>completed</i>';
  await by(world, RUN, async ({ page }) => {
    const acts = page.getByRole('group', { name: 'Steer this run' });
    await acts.getByRole('button', { name: 'Retry the task' }).click();
    await acts.getByText('the run is <i>completed</i>').waitFor();
  });
});

test('a question is answered where it is read', async () => {
  const world = steering(small());
  await by(world, '#/repo/r1/run/roman-1a2b3c4d/questions', async ({ page }) => {
    await page.getByLabel('Your answer').fill('Yes; as in the specification');
    await page.getByRole('button', { name: 'Send the answer' }).click();
    await page.getByRole('group').getByRole('button', { name: 'Send the answer' }).click();
    await expect
      .poll(() => world.orders)
      .toEqual([{ action: 'answer', question: 'q1a2', text: 'Yes; as in the specification' }]);
  });
});

test('the right to steer is in memory alone: other tabs have it, and a page that is loaded again has not', async () => {
  const world = steering(morning());
  await by(world, RUN, async ({ page, context, server }) => {
    await page.getByText('may steer').waitFor();
    const kept = await page.evaluate(() =>
      JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href]),
    );
    expect(kept).not.toContain('steer');
    const second = await context.newPage();
    await second.goto(server.url + RUN);
    await second.getByText('may steer').waitFor();
    await second.close();
    await page.reload();
    await page.getByText('looks only').waitFor();
    expect(await page.getByRole('group', { name: 'Steer this run' }).count()).toBe(0);
  });
});
