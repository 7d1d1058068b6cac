// The next act comes first: what is offered in each state, where it stands, where the focus is, what is copied or sent.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { launch } from './browser.mjs';
import { accessible, NARROW, open, overflows, WIDE } from './page.mjs';
import { within } from './standin.mjs';
import { iteration, morning, small, steering } from './worlds.mjs';

let browser;
beforeAll(async () => void (browser = await launch()));
afterAll(() => browser?.close());

const RUN = '#/repo/r2/run/calc-77aa';
const clipboard = (page) => page.evaluate(() => navigator.clipboard.readText());
const box = (locator) => locator.boundingBox();

/** A task that is done and waits for a person. */
function reviewed() {
  const world = morning();
  const { run } = world.found.status;
  const pending = iteration('calc-77aa', 30, 'parser.lex', 'Pending', -640_000, 300_000);
  Object.assign(run, { recent: [pending] });
  Object.assign(run.summary, {
    state: 'waiting',
    needs_you: true,
    reason: {
      message: 'task parser.lex is done and awaits your review: `runnerctl log 30 --diff` shows it',
      command: 'runnerctl approve --iter 30, or: runnerctl reject --iter 30 REASON',
      commands: [
        { label: 'Approve', argv: ['runnerctl', 'approve', '--iter', '30'] },
        { label: 'Show the diff', argv: ['runnerctl', 'log', '30', '--diff'] },
      ],
    },
  });
  world.found.iterations.splice(-1, 1, pending);
  return world;
}

/** Opens a place in a world, and asserts what holds in each. */
async function at(world, place, viewport, act) {
  await within(world, async ({ url }) => {
    const token = world.token ? `&token=${world.token}` : '';
    const { page, context, complaints } = await open(browser, url + place + token, { viewport });
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    await act(page);
    expect(await overflows(page)).toBe(false);
    await accessible(page, place);
    expect(complaints).toEqual([]);
    await context.close();
  });
}

test.each([WIDE, NARROW])(
  'a completed run offers to land it, and copying moves nothing, %o',
  async (viewport) => {
    await at(small(), '#/repo/r3/run/site-00e1', viewport, async (page) => {
      const why = page.locator('.why');
      await why.getByText('runner/site-00e1').waitFor();
      const places = () =>
        page.locator('.why *:visible, .sections').evaluateAll((all) =>
          all.map((element) => {
            const { x, y, width, height } = element.getBoundingClientRect();
            return [x, y, width, height];
          }),
        );
      const button = why.locator('button').first();
      await button.waitFor();
      const before = await places();
      await button.click();
      await why.locator('button', { hasText: 'Copied' }).waitFor();
      expect(await places()).toEqual(before);
      expect(await clipboard(page)).toBe('runnerctl -C /home/ada/src/website land --run site-00e1');
      expect(await why.locator('code', { hasText: await clipboard(page) }).count()).toBe(1);
      await why.getByText('Other ways').click();
      for (const verb of ['deliver', 'verify']) await why.locator('code', { hasText: verb }).waitFor();
    });
  },
);

test('the card of a completed run offers to land it', async () => {
  await at(small(), '', WIDE, async (page) => {
    const card = page.locator('.repo', { has: page.getByRole('link', { name: 'website' }) });
    await card.locator('code', { hasText: 'land --run site-00e1' }).waitFor();
  });
});

test.each([WIDE, NARROW])(
  'a question comes before everything else, with a box for the answer, %o',
  async (viewport) => {
    const world = morning();
    const asked = { id: 'q1', text: 'Which port?', answer: null, path: '/srv/a', run: 'calc-77aa' };
    world.found.questions = [asked, { ...asked, id: 'q0', run: 'another', text: 'Older?' }];
    world.found.status.run.questions = 1;
    await at(world, RUN, viewport, async (page) => {
      const section = page.getByRole('region', { name: /An agent asks/ });
      await section.getByText('Which port?').waitFor();
      expect((await box(section)).y).toBeLessThan((await box(page.locator('.why'))).y);
      const answer = section.getByLabel('Your answer');
      const { y, height } = await box(answer);
      expect(y + height).toBeLessThan(viewport.height / 2);
      await answer.fill('5432');
      await section.getByRole('button', { name: /^Copy the command/ }).click();
      await expect.poll(() => clipboard(page)).toBe('runnerctl -C /srv/a answer q1 -- 5432');
      expect(await page.getByText('Older?').count()).toBe(0);
    });
  },
);

test('what is copied from an older run names it', async () => {
  const world = morning();
  const older = structuredClone(world.found.status);
  older.run.summary.id = 'calc-old';
  world.of = (id, run) => (run === 'calc-old' ? { ...world.found, status: older } : world.found);
  const place = '/home/ada/src/calc';
  await at(world, '#/repo/r2/run/calc-old', WIDE, async (page) => {
    const why = page.locator('.why');
    await why.locator('button').first().click();
    await expect
      .poll(() => clipboard(page))
      .toBe(`runnerctl -C ${place} retry --run calc-old parser.lex --resume`);
    await why.getByText('Other ways').click();
    for (const code of await why.locator('code').allTextContents()) expect(code).toContain('--run calc-old');
    await page.goto(page.url().replace('calc-old', 'calc-77aa'));
    await page
      .locator('.why code', { hasText: /retry parser.lex --resume/ })
      .first()
      .waitFor();
  });
});

test.each(['light', 'dark'])('a review and a wait differ by word and colour, %s', async (colorScheme) => {
  const world = reviewed();
  await within(world, async ({ url }) => {
    const { page, context } = await open(browser, url, { colorScheme });
    const word = (text) => page.locator('.state', { hasText: text });
    await word('needs review').waitFor();
    const colours = await Promise.all(
      ['needs review', 'waiting for a service'].map((text) =>
        word(text).evaluate((state) => getComputedStyle(state).color),
      ),
    );
    expect(colours[0]).not.toBe(colours[1]);
    await page.locator('.repo.needs').getByText('needs review').waitFor();
    expect(await page.locator('.repo.needs').getByText('waiting for a service').count()).toBe(0);
    await context.close();
  });
});

test('a question is answered on the card, and the answer is sent where the page may steer', async () => {
  const world = steering(small());
  await at(world, '#/', WIDE, async (page) => {
    const card = page.locator('.repo', { has: page.getByRole('link', { name: 'roman' }) });
    await card.getByLabel('Your answer').fill('Yes');
    await card.getByRole('button', { name: 'Send the answer' }).click();
    await card.getByRole('group').getByRole('button', { name: 'Send the answer' }).click();
    await expect.poll(() => world.orders).toEqual([{ action: 'answer', question: 'q1a2', text: 'Yes' }]);
  });
});

test.each([WIDE, NARROW])('a review shows what was changed, and leads to the lines, %o', async (viewport) => {
  await at(reviewed(), RUN, viewport, async (page) => {
    const why = page.locator('.why');
    // The work alone: what the runner has written is not counted.
    await why.getByText('src/lex.rs').waitFor();
    expect(await why.innerText()).toMatch(/2\s+files, \+80 −2/);
    expect(await why.innerText()).not.toContain('.runner/');
    const link = why.getByRole('link', { name: 'Review the changes' });
    expect((await box(link)).y).toBeLessThan(viewport.height);
    expect(await why.locator('code', { hasText: 'approve --iter 30' }).first().isVisible()).toBe(true);
    await link.click();
    await page.locator('.diff .row').first().waitFor();
    expect(await page.locator('.decide code', { hasText: 'approve' }).first().isVisible()).toBe(true);
  });
});

test.each([WIDE, NARROW])('Approve and Reject are beside the changes, %o', async (viewport) => {
  const world = steering(reviewed());
  await at(world, RUN, viewport, async (page) => {
    const group = page.getByRole('group', { name: 'Review' });
    await group.getByRole('button', { name: 'Reject' }).waitFor();
    await page.getByRole('link', { name: 'Review the changes' }).click();
    await page.locator('.diff .row').first().waitFor();
    const [beside, lines] = await Promise.all([box(group), box(page.locator('.diff .list'))]);
    expect(beside.y + beside.height).toBeLessThanOrEqual(lines.y);
    expect(lines.height).toBeGreaterThan(200);
    await group.getByRole('button', { name: 'Approve' }).click();
    await group.getByText('cannot be taken back').waitFor();
    expect(world.orders).toBeUndefined();
    await page.keyboard.press('Enter');
    await expect.poll(() => world.orders).toEqual([{ action: 'approve', iter: 30 }]);
  });
});

test('a limit does not hide a review', async () => {
  const world = reviewed();
  Object.assign(world.found.status.run.summary, {
    state: 'limit',
    reason: { message: '30 iterations are used up', command: 'runnerctl resume --more 20', commands: [] },
  });
  await at(world, RUN, WIDE, async (page) => {
    await page.getByRole('link', { name: 'Review the changes' }).waitFor();
  });
});

test('a stuck run is retried and continued in one step', async () => {
  const world = steering(morning());
  await at(world, RUN, WIDE, async (page) => {
    await page.getByRole('button', { name: 'Retry the task' }).click();
    await expect
      .poll(() => world.orders)
      .toEqual([
        { action: 'retry', node: 'parser.lex' },
        { action: 'resume', now: false, more: null },
      ]);
  });
});
