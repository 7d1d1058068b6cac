// Long lists by their geometry: rows lie one below the other without gap or overlap, and what is asked for is in view.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { launch } from './browser.mjs';
import { NARROW, open, overflows, WIDE } from './page.mjs';
import { within } from './standin.mjs';
import { large, small } from './worlds.mjs';

let browser;
beforeAll(async () => void (browser = await launch()));
afterAll(() => browser?.close());

const RUN = '#/repo/r1/run/roman-1a2b3c4d';
const LINES = 50_000;

/** A log whose lines take from one to dozens of rows where they wrap; every 10,000th tells of a failure. */
const wide = Array.from({ length: LINES }, (_, at) => {
  const n = at + 1;
  const word = n % 10_000 === 0 ? 'error' : 'words';
  return `${n} ${`${word} `.repeat(1 + ((n * 7919) % 97))}`;
});

/** A diff of a megabyte in three files, and what is the runner's own. */
function patch() {
  const file = (name, rows) =>
    `diff --git a/${name} b/${name}\n--- a/${name}\n+++ b/${name}\n@@ -0,0 +1,${rows} @@\n${Array.from({ length: rows }, (_, at) => `+line ${at + 1} of ${name} and some more of it\n`).join('')}`;
  return (
    file('src/long.rs', 20_000) +
    file('.runner/state/task_tree.json', 40) +
    file('src/short.rs', 3) +
    file('src/tail.rs', 40)
  );
}

function world() {
  const found = small();
  found.found.text = (iter, name) => Buffer.from(name === 'diff' ? patch() : wide.join('\n') + '\n');
  found.found.live = () => false;
  return found;
}

/** Where drawn rows begin and end, from top to bottom, and where their pane does. */
const layout = (pane, rows) =>
  pane.evaluate((element, wanted) => {
    const at = (one) => ((box) => [box.top, box.bottom])(one.getBoundingClientRect());
    return { pane: at(element), rows: [...element.querySelectorAll(wanted)].map(at) };
  }, rows);

/** Fails where rows that are seen leave a gap or lie upon each other. */
async function closed(pane, rows, what) {
  await expect
    .poll(
      async () => {
        const found = await layout(pane, rows);
        const seen = found.rows.filter(([top, bottom]) => bottom > found.pane[0] && top < found.pane[1]);
        const joined = seen.every(([top], at) => at === 0 || Math.abs(top - seen[at - 1][1]) < 1);
        return joined && seen[0]?.[0] <= found.pane[0] + 1 && seen.at(-1)[1] >= found.pane[1] - 20;
      },
      { message: what },
    )
    .toBe(true);
}

const inPane = (pane, row) =>
  expect
    .poll(async () => {
      const [around, own] = [await pane.boundingBox(), await row.boundingBox()];
      return own !== null && own.y >= around.y - 1 && own.y < around.y + around.height - 10;
    })
    .toBe(true);

test.each([WIDE, NARROW])('lines of all lengths wrap, and each can be gone to, %o', async (viewport) => {
  await within(world(), async ({ url }) => {
    const { page, context, complaints } = await open(browser, `${url}${RUN}/iter/8/log?L23456`, { viewport });
    const pane = page.locator('.list[role=log]');
    await inPane(pane, page.locator('.line.target', { hasText: /^23456/ }));
    await page.getByRole('button', { name: 'Wrap' }).click();
    // What was read is still there.
    await inPane(pane, page.locator('.line.target', { hasText: /^23456/ }));
    await closed(pane, '.line', 'in the middle');
    expect(await overflows(page)).toBe(false);
    const heights = (await layout(pane, '.line')).rows.map(([top, bottom]) => Math.round(bottom - top));
    expect(new Set(heights).size).toBeGreaterThan(3);
    expect(heights.length).toBeLessThan(120);

    await page.getByRole('button', { name: 'Next failure' }).click();
    await inPane(pane, page.locator('.line.target', { hasText: /30000 error/ }));
    await page.getByRole('button', { name: 'Failure before' }).click();
    await inPane(pane, page.locator('.line.target', { hasText: /20000 error/ }));
    for (let at = 0; at < 5; at += 1) await pane.evaluate((box) => box.scrollBy(0, -700));
    await closed(pane, '.line', 'scrolled up over lines that were never measured');
    await pane.evaluate((box) => box.scrollTo(0, box.scrollHeight));
    await expect
      .poll(
        async () => (
          await pane.evaluate((box) => box.scrollTo(0, box.scrollHeight)),
          page.locator('.line', { hasText: /^50000 / }).count()
        ),
      )
      .toBe(1);
    await inPane(pane, page.locator('.line', { hasText: /^50000 / }));
    await closed(pane, '.line', 'at the end');

    await page.getByLabel(/^Search in/).fill('error');
    await page.getByText(/^5 of 50k lines/).waitFor();
    await expect.poll(async () => (await layout(pane, '.line')).rows.length).toBe(5);
    await page.getByLabel(/^Search in/).fill('');
    await page.getByRole('button', { name: 'Wrap' }).click();
    await closed(pane, '.line', 'not wrapped again');
    expect(complaints).toEqual([]);
    await context.close();
  });
});

test.each([WIDE, NARROW])(
  'a diff of a megabyte is read to its end, and its files fold, %o',
  async (viewport) => {
    expect(patch().length).toBeGreaterThan(900_000);
    await within(world(), async ({ url }) => {
      const { page, context, complaints } = await open(browser, `${url}${RUN}/iter/8/diff`, { viewport });
      const pane = page.locator('.diff .list');
      await page.getByText('+1', { exact: false }).first().waitFor();
      await closed(pane, '.head, .row', 'at the beginning');
      expect(await page.locator('.diff .row').count()).toBeLessThan(120);
      await pane.evaluate((box) => box.scrollTo(0, box.scrollHeight));
      await inPane(pane, page.locator('.row', { hasText: 'line 40 of src/tail.rs' }));
      await closed(pane, '.head, .row', 'at the end');
      await pane.evaluate((box) => box.scrollTo(0, 0));
      const long = page.locator('.head button', { hasText: 'src/long.rs' });
      await long.click();
      expect(await long.getAttribute('aria-expanded')).toBe('false');
      await inPane(pane, page.locator('.row', { hasText: 'line 3 of src/short.rs' }));
      const tops = (await layout(pane, '.head')).rows.map(([top]) => Math.round(top));
      // A head, and four rows below the second.
      expect([tops[1] - tops[0], tops[2] - tops[1]]).toEqual([44, 124]);
      expect(await pane.textContent()).not.toContain('.runner');
      expect(await overflows(page)).toBe(false);
      expect(complaints).toEqual([]);
      await context.close();
    });
  },
);

test('a tree of 20,000 tasks is gone through with the keys, and drawn as far as it is seen', async () => {
  await within(large(), async ({ url }) => {
    const { page, context } = await open(browser, `${url}#/repo/big/run/large-1`);
    const tree = page.getByRole('tree');
    await tree.waitFor();
    await tree.focus();
    await page.keyboard.press('Home');
    for (let at = 0; at < 2; at += 1) {
      await page.keyboard.press('*');
      await page.keyboard.press('ArrowDown');
    }
    await page.keyboard.press('*');
    await page.keyboard.press('End');
    const active = page.locator('.focused');
    await inPane(tree, active);
    await closed(tree, '[role=treeitem]', 'at the end');
    expect(await page.getByRole('treeitem').count()).toBeLessThan(80);
    await page.keyboard.press('Home');
    await inPane(tree, active);
    expect(await active.getAttribute('aria-level')).toBe('1');
    await context.close();
  });
});
