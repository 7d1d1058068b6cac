// The page in the morning: where things stand on the screen, where the focus is, what is on the clipboard.
import { spawnSync } from 'node:child_process';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { launch } from './browser.mjs';
import { accessible, NARROW, open, overflows, WIDE } from './page.mjs';
import { within } from './standin.mjs';
import { HOSTILE, hostile, morning, small } from './worlds.mjs';

let browser;
beforeAll(async () => void (browser = await launch()));
afterAll(() => browser?.close());

const MIDDLE = { width: 1024, height: 768 };
const RUN = '#/repo/r2/run/calc-77aa';

const box = (locator) => locator.boundingBox();
const inView = (locator) =>
  locator.evaluate((element) => {
    const { top, bottom } = element.getBoundingClientRect();
    const pane = element.closest('.list, .diff, .details')?.getBoundingClientRect();
    return (
      top >= (pane?.top ?? 0) - 1 && bottom <= (pane?.bottom ?? innerHeight) + 1 && bottom <= innerHeight + 1
    );
  });

test.each([WIDE, MIDDLE, NARROW])(
  'the lines of a diff are seen, without what the runner wrote, %o',
  async (viewport) => {
    await within(morning(), async ({ url }) => {
      const { page, context } = await open(browser, `${url}${RUN}/iter/30/diff`, { viewport });
      await page.waitForSelector('.diff .head');
      const pane = page.locator('.diff .list');
      const heads = new Map();
      let end = false;
      for (let top = 0; !end; top += 200) {
        await pane.evaluate((box, to) => box.scrollTo(0, to), top);
        await expect.poll(() => inView(page.locator('.diff .row').first()).then(() => true)).toBe(true);
        const seen = await pane.evaluate((box) => [
          [...box.querySelectorAll('.head')].map((head) => [
            head.querySelector('.path').textContent,
            head.getBoundingClientRect().top - box.getBoundingClientRect().top + box.scrollTop,
          ]),
          box.scrollTop + box.clientHeight >= box.scrollHeight - 1,
        ]);
        for (const [path, place] of seen[0]) heads.set(path, place);
        end = seen[1];
      }
      expect([...heads.keys()]).toEqual(['src/lex.rs', 'src/main.rs']);
      const [first, second] = [...heads.values()];
      // Forty lines of 20 pixels below the head.
      expect(second - first).toBeGreaterThan(800);
      expect((await box(pane)).height).toBeGreaterThan(200);
      await context.close();
    });
  },
);

test.each([WIDE, MIDDLE, NARROW])(
  'a guard opens at what failed in it, and leads to the next failure, %o',
  async (viewport) => {
    await within(morning(), async ({ url }) => {
      const { page, context } = await open(browser, `${url}${RUN}/iter/30`, { viewport });
      const failed = page.locator('.line', { hasText: 'not ok 181' });
      await failed.waitFor();
      await expect.poll(() => inView(failed)).toBe(true);
      expect(await page.locator('.line.target').count()).toBe(1);
      // Enough of it is seen to be read.
      expect((await box(page.locator('.list[role=log]'))).height).toBeGreaterThan(300);
      await page.locator('.list[role=log]').evaluate((pane) => pane.scrollTo(0, 0));
      await page.getByRole('button', { name: 'Next failure' }).click();
      await expect.poll(() => inView(failed)).toBe(true);
      expect(await overflows(page)).toBe(false);
      await context.close();
    });
  },
);

test('a log in which nothing failed opens at its end', async () => {
  await within(morning(), async ({ url }) => {
    const { page, context } = await open(browser, `${url}${RUN}/iter/12/log`);
    const last = page.locator('.line', { hasText: 'step 299' });
    await last.waitFor();
    await expect.poll(() => inView(last)).toBe(true);
    await context.close();
  });
});

test('the reason stands in full once, and the failing lines beside it', async () => {
  await within(morning(), async ({ url }) => {
    const { page, context } = await open(browser, url + RUN, { viewport: MIDDLE });
    await page
      .getByRole('region', { name: 'What failed in the guard' })
      .getByText('not ok 181 - parses ((')
      .waitFor();
    const full = (await box(page.locator('.why'))).height;
    for (const place of ['/timeline', '/memory', '/questions', '/settings', '/iter/30/log']) {
      await page.goto(`${url}${RUN}${place}`);
      await page.locator('.why.line').waitFor();
      expect((await box(page.locator('.why'))).height, place).toBeLessThan(Math.min(full, 60));
    }
    // Of a log there is more than its frame.
    expect((await box(page.locator('.list[role=log]'))).height).toBeGreaterThan(250);
    await context.close();
  });
});

test('on a phone the log of an iteration comes first', async () => {
  await within(morning(), async ({ url }) => {
    const { page, context } = await open(browser, `${url}${RUN}/iter/30/guard`, { viewport: NARROW });
    const log = await box(page.locator('.list[role=log]').first());
    expect(log.y).toBeLessThan(NARROW.height / 2);
    expect(log.y + log.height).toBeLessThanOrEqual(NARROW.height + 1);
    expect(log.height).toBeGreaterThan(300);
    await context.close();
  });
});

test('what is copied is one command, for whoever is elsewhere, and a shell takes it as it was meant', async () => {
  const world = morning();
  const place = "/home/ada/it's here; rm -rf ~";
  world.found.status.repo.path = place;
  world.found.status.run.summary.path = place;
  await within(world, async ({ url }) => {
    const { page, context } = await open(browser, url + RUN);
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    const copies = page.locator('.why button', { hasText: 'Copy' });
    await copies.first().waitFor();
    // One command leads; the others are shown to who asks for them.
    expect(await copies.filter({ visible: true }).count()).toBe(1);
    await page.getByText('Other ways').click();
    const expected = [
      ['runnerctl', '-C', place, 'retry', 'parser.lex', '--resume'],
      ['runnerctl', '-C', place, 'edit'],
      ['runnerctl', '-C', place, 'resume'],
    ];
    for (const [at, words] of expected.entries()) {
      await page.locator('.why button').nth(at).focus();
      await page.keyboard.press('Enter');
      await expect.poll(() => page.evaluate(() => navigator.clipboard.readText())).toContain(words.at(-1));
      const line = await page.evaluate(() => navigator.clipboard.readText());
      const shell = spawnSync('/bin/sh', ['-c', `runnerctl() { printf '%s\\0' runnerctl "$@"; }; ${line}`]);
      expect(shell.stdout.toString().split('\0').slice(0, -1)).toEqual(words);
    }
    await context.close();
  });
});

test('a sentence without a command is not offered to be copied', async () => {
  const world = morning();
  Object.assign(world.found.status.run.summary.reason, {
    command: 'git add -A && git commit, or git stash',
    commands: [],
  });
  await within(world, async ({ url }) => {
    const { page, context } = await open(browser, url + RUN);
    await page.locator('.why').getByText('git add -A').waitFor();
    expect(await page.locator('.why button').count()).toBe(0);
    await context.close();
  });
});

test('questions of one text are one, with each time that it was asked, and an answer becomes a command', async () => {
  const world = morning();
  const asked = { id: 'q1', text: 'Which port?', answer: null, path: '/srv/a b' };
  world.found.questions = [
    { ...asked, run: 'one' },
    { ...asked, run: 'one' },
    { ...asked, run: 'two' },
  ];
  await within(world, async ({ url }) => {
    const { page, context, complaints } = await open(browser, `${url}${RUN}/questions`);
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.getByText('Which port?').waitFor();
    const cards = page.locator('.questions li');
    expect(await cards.count()).toBe(1);
    expect((await box(cards.first())).height).toBeGreaterThan(60);
    await page.getByText('asked in one, 2 times, two').waitFor();
    await page.getByLabel('Your answer').fill("it's $HOME");
    await page.getByRole('button', { name: /Copy the command/ }).click();
    await expect
      .poll(() => page.evaluate(() => navigator.clipboard.readText()))
      .toBe(`runnerctl -C '/srv/a b' answer --run one q1 -- 'it'\\''s $HOME'`);
    expect(complaints).toEqual([]);
    await context.close();
  });
});

test('a leaf without attempts left is not said to be next', async () => {
  await within(morning(), async ({ url }) => {
    const { page, context } = await open(browser, url + RUN);
    await page.getByRole('treeitem', { name: /Tokens.*no attempts left/ }).waitFor();
    expect(await page.locator('[data-state=next]').count()).toBe(0);
    await context.close();
  });
});

test('a try is compared with the one before, line by line', async () => {
  const world = morning();
  const text = world.found.text;
  world.found.text = (iter, name) =>
    name === 'prompt' ? Buffer.from(`# Task\n\nSame.\nTry ${iter}\n`) : text(iter, name);
  await within(world, async ({ url }) => {
    const { page, context } = await open(browser, `${url}${RUN}/iter/30/compare`);
    await page.getByRole('button', { name: 'Prompt' }).click();
    const added = page.locator('.row.add', { hasText: 'Try 30' });
    await added.waitFor();
    const removed = await box(page.locator('.row.del', { hasText: 'Try 29' }));
    const below = await box(added);
    expect(below.y - removed.y).toBeCloseTo(20, 0);
    await page.getByRole('combobox', { name: /against/ }).selectOption('7');
    await page.locator('.row.del', { hasText: 'Try 7' }).waitFor();
    expect(page.url()).toContain('iter/30/compare?vs7');
    await accessible(page, 'compare');
    await context.close();
  });
});

test('a link to what is gone says so, and leads to what is nearest', async () => {
  await within(morning(), async ({ url }) => {
    const { page, context, complaints } = await open(browser, `${url}${RUN}/iter/99`);
    await page.getByText('This run has no iteration 99.').waitFor();
    await page.getByRole('link', { name: 'Its last one is 30' }).click();
    await page.getByRole('heading', { name: 'Iteration 30' }).waitFor();
    await page.goto(`${url}${RUN}/node/parser.gone.deep`);
    await page.getByText('This task is not in the tree any more.').waitFor();
    await page.getByRole('link', { name: 'What is left of it: The parser' }).click();
    await page.getByRole('heading', { name: 'The parser' }).waitFor();
    expect(complaints).toEqual([]);
    await context.close();
  });
});

test('thirty tabs share one stream, and each of them shows what happens', async () => {
  await within(small(), async (server) => {
    const first = await open(browser, server.url);
    const { context } = first;
    const pages = [first.page];
    for (let at = 1; at < 30; at += 1) {
      const page = await context.newPage();
      await page.goto(server.url, { waitUntil: 'domcontentloaded' });
      pages.push(page);
    }
    const live = () => document.querySelector('header [role=status]')?.textContent === 'live';
    for (const page of pages) await page.waitForFunction(live, null, { timeout: 30_000 });
    expect(server.streams()).toBe(1);
    server.world.repos[0].run.leaves_passed = 4;
    server.emit('iteration_added', {
      seq: 1,
      time: new Date().toISOString(),
      repo: 'r1',
      run: 'roman-1a2b3c4d',
      iter: 9,
      kind: 'iteration',
      data: {},
    });
    const moved = () =>
      [...document.querySelectorAll('.progress')].some((bar) => bar.textContent.trim().startsWith('4'));
    for (const page of pages) await page.waitForFunction(moved, null, { timeout: 30_000 });
    // The tab that listens is closed: another one goes on.
    await pages[0].close();
    await expect.poll(() => server.streams()).toBe(1);
    for (const page of pages.slice(1)) await page.waitForFunction(live, null, { timeout: 30_000 });
    await context.close();
  });
});

test('a tab that is not seen has no stream, and catches up when it is', async () => {
  await within(small(), async (server) => {
    const { page, context } = await open(browser, 'about:blank');
    await page.addInitScript(() => {
      window.unseen = true;
      Object.defineProperty(document, 'hidden', { get: () => window.unseen });
    });
    await page.goto(server.url);
    await page.locator('.repo').first().waitFor();
    expect(server.streams()).toBe(0);
    server.world.repos[0].run.leaves_passed = 4;
    const turn = (unseen) =>
      page.evaluate((unseen) => {
        window.unseen = unseen;
        document.dispatchEvent(new Event('visibilitychange'));
      }, unseen);
    await turn(false);
    await expect.poll(() => server.streams()).toBe(1);
    await turn(true);
    await expect.poll(() => server.streams()).toBe(0);
    await turn(false);
    await page.waitForFunction(() =>
      [...document.querySelectorAll('.progress')].some((bar) => bar.textContent.trim().startsWith('4')),
    );
    await context.close();
  });
});

test('who needs somebody comes first and is counted in the title, and who waits for a service is not among them', async () => {
  await within(morning(), async ({ url }) => {
    const { page, context } = await open(browser, url);
    await page.locator('.repo').first().waitFor();
    const [needs, goes, done] = await Promise.all(
      ['needs', 'goes', 'done'].map((group) => box(page.locator(`#group-${group}`))),
    );
    expect(needs.y).toBeLessThan(goes.y);
    expect(goes.y).toBeLessThan(done.y);
    expect(await page.title()).toBe('(2) runner');
    const marked = await page.locator('.repo.needs h3').allTextContents();
    expect(marked.map((name) => name.trim()).sort()).toEqual(['calc', 'payment-gateway']);
    await page.locator('.repo.needs .failing', { hasText: 'not ok' }).waitFor();
    await accessible(page, 'overview');
    await context.close();
  });
});

/** A failure as `cargo test` tells it. */
function brackets() {
  const world = morning();
  const claim = `assertion failed: tokens("((") == [${'Open, '.repeat(30)}]`;
  const lines = ['---- brackets stdout ----', "thread 'brackets' panicked at tests/all.rs:88:5:", claim];
  world.found.failures = () => [{ name: 'brackets', lines }];
  return { world, claim };
}

test('what did not hold is shown in full, not the banner above it', async () => {
  const { world, claim } = brackets();
  await within(world, async ({ url }) => {
    const { page, context } = await open(browser, url);
    const card = page.locator('.repo.needs .failing');
    await card.waitFor();
    expect(await card.innerText()).toMatch(/^brackets\nassertion failed/);
    expect(await card.evaluate((pre) => pre.scrollWidth <= pre.clientWidth)).toBe(true);
    await page.goto(url + RUN);
    const region = page.getByRole('region', { name: 'What failed in the guard' });
    await region.getByText('brackets').waitFor();
    expect(await region.innerText()).toBe(
      `brackets\n${claim}\nthread 'brackets' panicked at tests/all.rs:88:5:`,
    );
    expect(await region.evaluate((pre) => pre.scrollWidth <= pre.clientWidth)).toBe(true);
    await context.close();
  });
});

test.each([WIDE, NARROW])('a line of the dense list says why it needs somebody, %o', async (viewport) => {
  const { world } = brackets();
  await within(world, async ({ url }) => {
    const { page, context } = await open(browser, url, { viewport });
    const dense = page.getByRole('button', { name: 'Dense' });
    if (viewport === WIDE) await dense.click();
    const row = page.locator('.row', { has: page.getByRole('link', { name: 'calc' }) });
    await row.locator('code', { hasText: 'assertion failed' }).waitFor();
    const [around, reason] = await Promise.all([box(row), box(row.locator('.reason'))]);
    expect(await row.locator('.reason').innerText()).toContain('has used all of its 3 attempts');
    expect(reason.width).toBeGreaterThan(250);
    expect(reason.y + reason.height).toBeLessThanOrEqual(around.y + around.height);
    expect(await overflows(page)).toBe(false);
    await accessible(page, 'dense');
    await context.close();
  });
});

test('nothing that is shown moves away while a run is read', async () => {
  await within(morning(), async ({ url }) => {
    const { page, context } = await open(browser, 'about:blank');
    await page.addInitScript(() => {
      window.shift = 0;
      new PerformanceObserver((list) =>
        list.getEntries().forEach((entry) => (window.shift += entry.hadRecentInput ? 0 : entry.value)),
      ).observe({ type: 'layout-shift', buffered: true });
    });
    await page.goto(url + RUN);
    await page.getByText('not ok 181 - parses ((').waitFor();
    await page.getByRole('treeitem', { name: /Tokens/ }).waitFor();
    expect(await page.evaluate(() => window.shift)).toBeLessThan(0.05);
    await context.close();
  });
});

test('where the system paints, bars and marks are still told apart', async () => {
  await within(small(), async ({ url }) => {
    const { page, context } = await open(browser, url);
    await page.emulateMedia({ forcedColors: 'active' });
    await page.locator('.progress').first().waitFor();
    const [rest, done] = await Promise.all(
      ['.rest', '.done'].map((part) =>
        page
          .locator(`.progress ${part}`)
          .first()
          .evaluate((bar) => getComputedStyle(bar).fill),
      ),
    );
    expect(rest).not.toBe(done);
    await context.close();
  });
});

test('what agents write is a command nowhere', async () => {
  const world = hostile();
  world.found.status.run.summary.reason = {
    message: HOSTILE,
    command: HOSTILE,
    commands: [{ label: HOSTILE, argv: ['runnerctl', 'retry', HOSTILE] }],
  };
  await within(world, async ({ url }) => {
    const { page, context, complaints } = await open(browser, `${url}#/repo/r1/run/roman-1a2b3c4d`);
    await page.locator('.why code').first().waitFor();
    const shown = await page.locator('.why code').first().textContent();
    expect(shown).toContain("'<img src=x");
    expect(await page.evaluate(() => 'pwned' in window)).toBe(false);
    expect(complaints).toEqual([]);
    await context.close();
  });
});
