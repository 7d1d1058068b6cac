// What was changed: by a whole run, by an attempt, and by one attempt otherwise than by another.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { launch } from './browser.mjs';
import { accessible, NARROW, open, overflows, WIDE } from './page.mjs';
import { within } from './standin.mjs';
import { iteration, morning } from './worlds.mjs';

let browser;
beforeAll(async () => void (browser = await launch()));
afterAll(() => browser?.close());

const RUN = '#/repo/r2/run/calc-77aa';
const id = (n) => (n === 0 ? '0' : String(n)).repeat(40);
const box = (locator) => locator.boundingBox();

/** A patch of a file: the numbers of its contents before and after, and hunks. */
const patch = (path, [from, to], ...lines) =>
  [
    `diff --git a/${path} b/${path}`,
    ...(from === 0 ? ['new file mode 100644'] : []),
    `index ${id(from)}..${id(to)}`,
    `--- ${from === 0 ? '/dev/null' : `a/${path}`}`,
    `+++ b/${path}`,
    ...lines,
    '',
  ].join('\n');

const own = patch('.runner/state/task_tree.json', [7, 8], '@@ -1 +1 @@', '-{}', '+{"a":1}');
const long = `    let value = ${'a_long_name_of_something + '.repeat(12)}0;`;

/** Three attempts: the second mends what the first has written, the third changes nothing. */
function world() {
  const made = morning();
  const diffs = {
    1: `${patch('src/lex.rs', [0, 1], '@@ -0,0 +1,4 @@', '+fn lex() {', '+    wrong();', '+    twice();', '+}')}${own}`,
    2: `${patch('src/deep/down/parse.rs', [3, 4], '@@ -10,3 +10,4 @@', ' fn parse() {', '-    old();', '+    new();', `+${long}`, ' }')}${patch('src/lex.rs', [1, 2], '@@ -1,4 +1,4 @@', ' fn lex() {', '-    wrong();', '+    right();', '     twice();', ' }')}${own}`,
    3: own,
  };
  made.found.iterations = [1, 2, 3].map((iter) =>
    iteration('calc-77aa', iter, 'parser.lex', 'Retry', (iter - 4) * 60_000, 50_000),
  );
  made.found.text = (iter, name) => (name === 'diff' && diffs[iter] ? Buffer.from(diffs[iter]) : null);
  return made;
}

async function at(place, viewport, act) {
  await within(world(), async ({ url }) => {
    const { page, context, complaints } = await open(browser, `${url}${RUN}${place}`, { viewport });
    await act(page);
    await accessible(page, place);
    expect(await overflows(page)).toBe(false);
    expect(complaints).toEqual([]);
    await context.close();
  });
}

test.each([WIDE, NARROW])(
  'the changes of a run are those of all its attempts as one, %o',
  async (viewport) => {
    await at('/changes', viewport, async (page) => {
      await page.locator('.diff .row').first().waitFor();
      const code = await page.locator('.diff .row.add .code').allTextContents();
      expect(code).toEqual(['    new();', long, 'fn lex() {', '    right();', '    twice();', '}']);
      const text = await page.locator('.diff').innerText();
      for (const word of ['wrong', '.runner/', 'index ']) expect(text).not.toContain(word);
      const list = page.getByRole('list', { name: 'Changed files' });
      if (viewport === NARROW) await page.getByText('2 files').click();
      expect(await list.getByRole('button').allInnerTexts()).toEqual([
        expect.stringMatching(/^parse\.rs\s+src\/deep\/down\s+\+2\s+−1$/),
        expect.stringMatching(/^lex\.rs\s+src\s+\+4\s+−0$/),
      ]);
      // The numbers of all files are in one column.
      const ends = await list
        .locator('.sums')
        .evaluateAll((all) => all.map((one) => one.getBoundingClientRect().right));
      expect(new Set(ends.map(Math.round)).size).toBe(1);
      await list.getByRole('button', { name: /lex\.rs/ }).click();
      await page.locator('.head', { hasText: 'src/lex.rs' }).waitFor();
    });
  },
);

test('both sides stand beside each other, wrap, and stay so', async () => {
  await at('/changes', WIDE, async (page) => {
    const button = page.getByRole('button', { name: 'Side by side' });
    await button.click();
    expect(await button.evaluate((element) => element === document.activeElement)).toBe(true);
    const halves = page.locator('.row.two', { hasText: 'old();' }).locator('.half');
    const [old, now] = await Promise.all([box(halves.nth(0)), box(halves.nth(1))]);
    expect(old.y).toBe(now.y);
    expect(Math.abs(old.width - now.width)).toBeLessThan(2);
    expect(await halves.allTextContents()).toEqual(['−    old();', '+    new();']);
    const wrapped = page.locator('.row.two', { hasText: 'a_long_name' });
    expect((await box(wrapped)).height).toBeGreaterThan(30);
    const pane = page.locator('.diff .list');
    expect(await pane.evaluate((element) => element.scrollWidth <= element.clientWidth)).toBe(true);
    await page.reload({ waitUntil: 'domcontentloaded' });
    await page.locator('.row.two').first().waitFor();
    expect(await button.getAttribute('aria-pressed')).toBe('true');
    await page.setViewportSize(NARROW);
    await page.locator('.diff .row:not(.two)').first().waitFor();
    await page.setViewportSize(WIDE);
    await page.locator('.row.two').first().waitFor();
  });
});

test('an attempt that changed nothing says so, and what the runner wrote is a link away', async () => {
  await at('/iter/3/diff', WIDE, async (page) => {
    await page.getByText('This attempt changed nothing.').waitFor();
    await page.getByRole('link', { name: "The runner's own files" }).waitFor();
    expect(await page.locator('.diff').count()).toBe(0);
  });
});

test('two attempts are compared file by file', async () => {
  await at('/iter/2/compare?vs1', WIDE, async (page) => {
    await page.locator('.head', { hasText: 'src/lex.rs' }).waitFor();
    const text = await page.locator('.diff').innerText();
    expect(text).toContain('right');
    for (const word of ['.runner/', 'index ', '@@']) expect(text).not.toContain(word);
    await page.getByRole('button', { name: 'Side by side' }).click();
    await page.locator('.row.two').first().waitFor();
  });
});
