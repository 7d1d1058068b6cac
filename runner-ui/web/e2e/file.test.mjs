// A run as one file, opened as a file: the same views, nobody asked, and text of agents that is text there too.
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { launch } from './browser.mjs';
import { Home } from './home.mjs';
import { accessible, NARROW, open, overflows, WIDE } from './page.mjs';

let browser;
beforeAll(async () => void (browser = await launch()));
afterAll(() => browser?.close());

async function homeOf(kind) {
  const home = await Home.make(kind);
  onTestFinished(() => home.end());
  return home;
}

const HOSTILE = '</script><script>window.pwned=1</script><!--<script><img src=x onerror=window.pwned=1>';
const answer = (status, summary, children = null) =>
  `answer '${JSON.stringify({ status, summary, children }).replaceAll("'", "'\\''")}'`;
const part = (title) => ({ title, goal: `${title} ${HOSTILE}`, acceptance: ['it holds'] });

/** What `runnerctl` says of a file, or the error where it fails. */
const exported = async (home, run, to, ...more) =>
  JSON.parse((await home.ctl('export', 'html', run, to, '--json', ...more)).stdout);

/** Opens a file, and keeps all that the page asks for. */
async function opened(file, place = '', options = {}) {
  const asked = [];
  const shown = await open(browser, 'about:blank', options);
  shown.page.on('request', (request) => asked.push(request.url()));
  await shown.page.goto(`file://${file}${place}`);
  return { ...shown, asked };
}

test('a run that is under way is in one file, with everything that the page shows of it', async () => {
  const home = await homeOf('command');
  await home.gates('last');
  await home.script(
    'agent',
    1,
    `${answer('decomposed', 'Two parts', [part('Numbers to numerals'), part(`Back ${HOSTILE}`)])}\n`,
  );
  await home.script(
    'agent',
    2,
    `echo '${HOSTILE}'\nseq 1 300000 | sed 's/^/step /'\necho encode > encode.sh\n${answer('done', HOSTILE)}\n`,
  );
  await home.script('guard', 1, `echo checking\necho 'not ok 1 - encode 4 ${HOSTILE}'\nexit 1\n`);
  await home.script('agent', 3, `echo the third session\ngate last\n${answer('retry', 'Not yet')}\n`);
  await home.ctl('start', '--yes', '--id', 'roman', '-m', `Roman numerals ${HOSTILE}`);
  await expect.poll(() => readFile(join(home.path, 'agent.count'), 'utf8'), { timeout: 30_000 }).toBe('3\n');

  const file = join(home.path, 'roman.html');
  const made = await exported(home, 'rom', file);
  expect(made).toMatchObject({ schema: 'runner/export-html.v1', run: 'roman', to: file, iterations: 2 });
  expect(made.shortened.map(({ iter, text }) => [iter, text])).toEqual([['2', 'executor.log']]);
  expect(made.cuts).toEqual(['one long text is here with its beginning and its end alone']);
  expect(made.bytes).toBe((await stat(file)).size);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  // What is there is replaced by nobody who has not asked for it.
  await expect(exported(home, 'roman', file)).rejects.toThrow(/--force/);
  expect((await exported(home, 'roman', file, '--force')).run).toBe('roman');
  await home.open('last');

  const { page, context, complaints, asked } = await opened(file);
  await page.getByRole('treeitem', { name: /Numbers to numerals/ }).waitFor();
  expect(page.url()).toMatch(/roman\.html#\/repo\/[^/]+\/run\/roman$/);
  await page.locator('header').getByText('file of').waitFor();
  await page.getByText('Not all is in this file').waitFor();
  const run = page.url().slice(page.url().indexOf('#'));
  for (const [place, text] of [
    ['', 'At work on'],
    ['/timeline', 'Numbers to numerals'],
    ['/plots', 'Cost'],
    ['/memory', 'GOAL.md'],
    ['/questions', 'No agent has asked anything'],
    ['/settings', 'guard.command'],
    ['/iter/2/guard', 'not ok 1'],
    ['/iter/2/log', 'step 300000'],
    ['/iter/2/diff', 'encode.sh'],
    ['/iter/2/prompt', 'numerals'],
    ['/iter/2/events', 'guard'],
    ['/iter/2/compare', 'Compare'],
    ['/iter/3/log', 'the third session'],
    ['/iter/2/log?L1', HOSTILE],
  ]) {
    await page.goto(`file://${file}${run}${place}`);
    await page.locator('main').getByText(text).first().waitFor();
    const found = await page.evaluate(() => ({
      pwned: 'pwned' in window,
      foreign: document.querySelectorAll('img, iframe, [onerror], main script').length,
      links: [...document.querySelectorAll('a[href]')].filter((a) => !a.getAttribute('href').startsWith('#'))
        .length,
    }));
    expect(found, place).toEqual({ pwned: false, foreign: 0, links: 0 });
    expect(await overflows(page), place).toBe(false);
  }
  await accessible(page, 'a log of a file');
  // A palette looks through the logs of a file too.
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox').fill('checking');
  await page.keyboard.press('Shift+Enter');
  await page.getByRole('option', { name: /Iteration 2 · guard.log/ }).waitFor();
  expect(complaints).toEqual([]);
  expect(asked.filter((url) => !url.startsWith('file://') && !url.startsWith('data:'))).toEqual([]);
  expect(new Set(asked.filter((url) => url.startsWith('file://')).map((url) => url.split('#')[0]))).toEqual(
    new Set([`file://${file}`]),
  );
  await context.close();
});

test.each([WIDE, NARROW])(
  'an isolated run that has ended is in a file without its repository, %o',
  async (viewport) => {
    const home = await homeOf('command');
    await home.script('agent', 1, `echo x > x\n${answer('done', 'It is done')}\n`);
    await home.script('guard', 1, `echo all checks hold\n`);
    await home.ctl(
      'start',
      '--yes',
      '--isolated',
      '--wait',
      '--id',
      'apart',
      '-m',
      'Apart from the work tree',
    );
    const file = join(home.path, 'apart.html');
    const made = await exported(home, 'apart', file);
    expect([made.run, made.cuts]).toEqual(['apart', []]);
    const { page, context, complaints } = await opened(file, '', { viewport });
    await page.getByRole('heading', { level: 1, name: 'Apart from the work tree' }).waitFor();
    await page.locator('.line .state, .line').getByText('completed').first().waitFor();
    await page.goto(`${page.url()}/iter/1/guard`);
    await page.getByText('all checks hold').waitFor();
    expect(await overflows(page)).toBe(false);
    expect(complaints).toEqual([]);
    // A text that was changed behind the back of its digest is not run.
    const text = await readFile(file, 'utf8');
    const other = join(home.path, 'other.html');
    await writeFile(other, text.replace('<script type="module">', '<script type="module">window.pwned=1;'));
    await page.goto(`file://${other}`);
    expect(await page.evaluate(() => 'pwned' in window)).toBe(false);
    await context.close();
  },
);
