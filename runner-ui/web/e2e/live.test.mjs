// A whole run as a reader sees it: the real daemon, the real server, a scripted agent.
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFailed, onTestFinished, test } from 'vitest';
import { launch } from './browser.mjs';
import { Home } from './home.mjs';
import { accessible, NARROW, open, overflows } from './page.mjs';

const SHOTS = process.env.RUNNER_SHOTS;
let browser;
beforeAll(async () => void (browser = await launch()));
afterAll(() => browser?.close());

/** A home for one test. */
async function homeOf(kind) {
  const home = await Home.make(kind);
  onTestFinished(() => home.end());
  return home;
}

/** Keeps a picture for a person to look at, where one is asked for. */
async function shot(page, name) {
  if (!SHOTS) return;
  await mkdir(SHOTS, { recursive: true });
  await page.screenshot({ path: `${SHOTS}/${name}.png` });
}

const children = JSON.stringify({
  status: 'decomposed',
  summary: 'Two parts: each direction alone.',
  children: [
    {
      title: 'Numbers to numerals',
      goal: '`encode NUMBER` prints a numeral.',
      acceptance: ['encode 1994 prints MCMXCIV'],
    },
    {
      title: '<b onclick=alert(1)>Numerals</b> to numbers',
      goal: '<script>window.pwned = 1</script>',
      acceptance: ['decode MCMXCIV prints 1994'],
    },
  ],
});
const done = (summary) => JSON.stringify({ status: 'done', summary, children: null });
const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

test('a run is followed from its first session to its goal, through the death of the daemon', async () => {
  const home = await homeOf('command');
  await home.gates('split', 'half', 'end', 'red', 'green', 'again', 'last', 'final');
  await home.script('agent', 1, `echo looking around\ngate split\nanswer ${quoted(children)}\n`);
  await home.script(
    'agent',
    2,
    `echo line one of the session\ngate half\necho line two of the session\ngate end\necho encode > encode.sh\nanswer ${quoted(done('Numbers become numerals.'))}\n`,
  );
  await home.script(
    'guard',
    1,
    `printf '\\033[31mFAIL\\033[0m encode 4: expected IV, got IIII\\n'\ngate red\nexit 1\n`,
  );
  await home.script(
    'agent',
    3,
    `gate again\necho better > encode.sh\nanswer ${quoted(done('A smaller figure before a larger one.'))}\n`,
  );
  await home.script('guard', 2, `echo all checks hold\ngate green\n`);
  await home.script('agent', 4, `echo before the daemon dies\ngate last\n`);
  await home.script(
    'agent',
    5,
    `echo after the daemon came back\necho decode > decode.sh\nanswer ${quoted(done('Numerals become numbers.'))}\n`,
  );
  await home.script('guard', 3, `echo all checks hold\ngate final\n`);

  await home.ctl('start', '--yes', '-m', 'A command that converts Roman numerals');
  const address = await home.view();
  const { page, context, complaints } = await open(browser, await address());
  onTestFailed(() => shot(page, 'failed'));

  // The token leaves the address at once, and the overview names the repository.
  await page.getByRole('link', { name: 'roman' }).waitFor();
  expect(page.url()).not.toContain('token');
  await shot(page, 'overview');
  await page.getByRole('link', { name: 'roman' }).click();
  await page.getByRole('treeitem', { name: /A command that converts/ }).waitFor();

  // The tree grows.
  expect(await page.getByRole('treeitem').count()).toBe(1);
  await home.open('split');
  await page.getByRole('treeitem', { name: /Numbers to numerals/ }).waitFor();
  await page.getByRole('treeitem', { name: /<b onclick/ }).waitFor();

  // The log streams.
  await page.getByRole('link', { name: 'Numbers to numerals' }).first().click();
  await page.getByRole('tab', { name: 'Log' }).click();
  await page.getByText('line one of the session').waitFor();
  expect(await page.getByText('line two of the session').count()).toBe(0);
  await home.open('half');
  await page.getByText('line two of the session').waitFor();
  await accessible(page, 'a live log');
  await shot(page, 'log');

  // The guard goes red.
  await home.open('end');
  await page.getByRole('tab', { name: 'Guard' }).click();
  await page.getByText('FAIL', { exact: true }).waitFor();
  await page.locator('.stages [aria-current=step]', { hasText: 'guard' }).waitFor();
  await home.open('red');
  await page.locator('.iteration header').getByText('guard failed').waitFor();
  const permanent = page.url();

  // A second reader follows the link in a browser of their own, on a small screen.
  const second = await open(browser, await address(), { viewport: NARROW, colorScheme: 'dark' });
  await second.page.getByRole('link', { name: 'roman' }).waitFor();
  await second.page.goto(permanent);
  await second.page.getByText('FAIL', { exact: true }).waitFor();
  expect(await overflows(second.page)).toBe(false);
  await shot(second.page, 'narrow');
  expect(second.complaints).toEqual([]);
  await second.context.close();

  // And green.
  await home.open('again');
  await home.open('green');
  await page.getByRole('treeitem', { name: /Numbers to numerals.*passed/ }).waitFor();

  // The daemon is killed, and comes back.
  await page.getByRole('link', { name: 'Tasks', exact: true }).click();
  await page.getByRole('treeitem', { name: /<b onclick.*at work/ }).waitFor();
  await page.locator('.stages [aria-current=step]', { hasText: 'work' }).waitFor();
  // A session that is killed before it has counted itself would be the fourth again.
  await expect.poll(() => readFile(join(home.path, 'agent.count'), 'utf8')).toBe('4\n');
  await home.kill();
  await page.locator('header').getByText('daemon away').waitFor();
  await page.getByText(/data .* old/).waitFor();
  await shot(page, 'away');
  await home.daemon();
  await page.locator('header').getByText('live', { exact: true }).waitFor();
  await home.open('final');
  await page.getByRole('heading', { name: /Goal reached/ }).waitFor();
  await page.locator('.facts').getByText('2 of 2 tasks').waitFor();
  await shot(page, 'done');

  for (const section of ['Changes', 'Timeline', 'Plots', 'Memory', 'Questions', 'Settings', 'Tasks']) {
    await page.getByRole('link', { name: section, exact: true }).click();
    await page.locator('.sections [aria-current=page]', { hasText: section }).waitFor();
    await page.getByText('Reading…').waitFor({ state: 'detached' });
    await accessible(page, section);
    await shot(page, section.toLowerCase());
  }
  await page.goto(permanent.replace(/iter\/.*/, 'iter/4/diff'));
  await page.getByText('This attempt changed nothing.').waitFor();
  await shot(page, 'diff');
  for (const [tab, text] of [
    ['Prompt', 'Numerals'],
    ['Events', 'opened'],
    ['Log', 'before the daemon'],
  ]) {
    await page.getByRole('tab', { name: tab }).click();
    await page.locator('.panel').getByText(text).first().waitFor();
  }
  expect(await page.evaluate(() => 'pwned' in window)).toBe(false);
  expect(complaints).toEqual([]);
  await context.close();
});

test('the steps of an agent are told while it works, and what they cost', async () => {
  const home = await homeOf('codex');
  await home.gates('begin', 'end');
  const told = (...lines) => lines.map((line) => `printf '%s\\n' ${quoted(JSON.stringify(line))}\n`).join('');
  const item = (id, more) => ({ type: 'item.completed', item: { id: `item_${id}`, ...more } });
  const ran = {
    type: 'command_execution',
    command: 'just test',
    aggregated_output: 'not ok 1\n',
    exit_code: 1,
    status: 'failed',
  };
  const answer = done('One check is red, then none.');
  await home.script(
    'codex',
    1,
    told(
      { type: 'thread.started', thread_id: '01a2018a-64ce-7382-9db5-d4d138fff34e' },
      { type: 'turn.started' },
    ) +
      told(item(1, { type: 'agent_message', text: 'I look at <b>the tests</b> first.' })) +
      'gate begin\n' +
      told({
        ...item(2, { ...ran, aggregated_output: '', exit_code: null, status: 'in_progress' }),
        type: 'item.started',
      }) +
      told(item(2, ran)) +
      'gate end\necho made > made.txt\n' +
      told(item(3, { type: 'agent_message', text: answer })) +
      told({
        type: 'turn.completed',
        usage: { input_tokens: 2000, cached_input_tokens: 400, output_tokens: 100 },
      }) +
      `answer ${quoted(answer)}\n`,
  );
  await home.script('guard', 1, 'echo fine\n');
  await home.ctl('start', '--yes', '-m', 'Make it');
  const { page, context, complaints } = await open(browser, await (await home.view())());
  onTestFailed(() => shot(page, 'failed-steps'));
  await page.getByRole('link', { name: 'roman' }).click();
  await page.locator('.live').getByRole('link').click();
  await page.getByText('I look at <b>the tests</b> first.').waitFor();
  expect(await page.getByText('just test').count()).toBe(0);
  await home.open('begin');
  await page.locator('.step.tool.failed, .step.tool_result.failed').first().waitFor();
  await shot(page, 'steps');
  await home.open('end');
  await page.locator('.iteration header').getByText('finished').waitFor();
  await page.locator('.iteration header').getByText('2.1k tokens').waitFor();
  expect(complaints).toEqual([]);
  await context.close();
});
