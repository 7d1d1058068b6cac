// A night with nine repositories, each of which is left in another state: real runs of a real daemon, with scripted agents.
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Home } from './home.mjs';

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
const say = (...lines) => lines.map((line) => `printf '%s\\n' ${quoted(line)}\n`).join('');
const USAGE = { input_tokens: 41_200, cached_tokens: 180_000, output_tokens: 6_400, cost_micro_usd: 412_000 };
const answer = (status, summary, children = null) =>
  `answer ${quoted(JSON.stringify({ status, summary, children, usage: USAGE }))}\n`;
const part = (title, goal, ...acceptance) => ({ title, goal, acceptance });
const split = (summary, ...children) => answer('decomposed', summary, children);
const write = (path, text) => `mkdir -p "$(dirname ${path})"\n${say(text).trimEnd()} > ${path}\n`;
/** A session that works and hands over, or says that it is done. */
const works = (path, text, status, summary) =>
  say('reading the task', `editing ${path}`) + write(path, text) + answer(status, summary);
const green = (count) => say(`running ${count} tests`, `test result: ok. ${count} passed; 0 failed`);
const red = (name, left, right) =>
  say(
    'running 31 tests',
    `test ${name} ... FAILED`,
    '',
    'failures:',
    '',
    `---- ${name} stdout ----`,
    `thread '${name}' panicked at tests/all.rs:88:5:`,
    'assertion `left == right` failed',
    `  left: ${left}`,
    ` right: ${right}`,
    '',
    'test result: FAILED. 30 passed; 1 failed',
  ) + 'exit 101\n';

/** A session of codex: what it tells on its standard output, and what else it does. */
const session = (items, text) =>
  say(
    ...[
      { type: 'thread.started', thread_id: '01a2018a-64ce-7382-9db5-d4d138fff34e' },
      { type: 'turn.started' },
      ...items.flatMap((item, at) => {
        const of = { id: `item_${at}`, ...item };
        const begun = { ...of, aggregated_output: '', exit_code: null, status: 'in_progress' };
        const ended = { type: 'item.completed', item: of };
        return item.type === 'command_execution' ? [{ type: 'item.started', item: begun }, ended] : [ended];
      }),
    ].map((event) => JSON.stringify(event)),
  ) +
  text +
  say(
    JSON.stringify({
      type: 'turn.completed',
      usage: { input_tokens: 221_200, cached_input_tokens: 180_000, output_tokens: 6_400 },
    }),
  );
const ran = (command, aggregated_output, exit_code) => ({
  type: 'command_execution',
  command,
  aggregated_output,
  exit_code,
  status: exit_code === 0 ? 'completed' : 'failed',
});

/** Name, goal, settings, and what agent and guard do each time; `end` is the state in which the run is left. */
const REPOSITORIES = [
  {
    name: 'website',
    goal: 'The site loads within a second on a phone',
    end: 'completed',
    agent: [
      split(
        'Pictures and fonts take most of the time.',
        part('Pictures in the size in which they are shown', 'No picture is scaled down by the browser.'),
        part('Fonts of the system', 'No font is fetched.'),
      ),
      works('src/pictures.rs', 'fn srcset() {}', 'done', 'Each picture has a srcset.'),
      works('src/fonts.css', 'body { font: system-ui }', 'done', 'The system font is used.'),
    ],
    guard: [green(18), green(21)],
  },
  {
    name: 'calc',
    goal: 'A calculator that explains each step',
    end: 'stuck',
    limits: 'max_attempts_default = 2\n',
    agent: [
      split(
        'Tokens first, then the tree.',
        part('Tokens', 'A text becomes tokens.', 'an unknown character is an error'),
        part('The tree', 'Tokens become a tree.'),
      ),
      works('src/tokens.rs', 'pub fn tokens() {}', 'done', 'Numbers and operators are tokens.'),
      works('src/tree.rs', 'pub fn tree() {}', 'done', 'Precedence climbs.'),
      works('src/tree.rs', 'pub fn tree() { climb() }', 'done', 'Brackets are parsed by recursion.'),
    ],
    guard: [
      green(12),
      red('parses_nested_brackets', 'Ok(Num(3))', 'Err(Unclosed(1))'),
      red('parses_nested_brackets', 'Ok(Num(3))', 'Err(Unclosed(1))'),
    ],
  },
  {
    name: 'roman',
    goal: 'A command that converts Roman numerals',
    end: 'stuck',
    limits: 'max_attempts_default = 1\n',
    agent: [
      say('reading the goal') +
        'printf \'%s\\n\' "- Is a lower-case numeral such as mcmxciv accepted, or an error?" >> .runner/state/questions.md\n' +
        answer('retry', 'The goal does not say whether lower case is a numeral; asked.'),
    ],
    guard: [],
  },
  {
    name: 'shop',
    goal: 'Orders can be exported as CSV',
    end: 'waiting',
    more: '\n[review]\nby = "human"\n',
    agent: [
      works(
        'src/csv.rs',
        'pub fn quote() {}',
        'done',
        'Fields with commas, quotes and line ends are quoted.',
      ),
    ],
    guard: [green(44)],
  },
  {
    name: 'payment-gateway',
    goal: 'Refunds are idempotent',
    end: 'held',
    agent: [works('src/refund.rs', 'pub fn refund() {}', 'retry', 'A key per refund; the store is next.')],
    guard: [],
    gates: ['first'],
  },
  {
    name: 'importer',
    goal: 'Import the orders of the old shop without losing one',
    end: 'running',
    kind: 'codex',
    model: 'gpt-5.5',
    agent: [
      session(
        [{ type: 'agent_message', text: 'The dump has three tables; each is a task of its own.' }],
        split(
          'Read, convert, compare.',
          part('Read the dump', 'The dump of the old shop is read.'),
          part(
            'Convert the prices',
            'Prices in cents, as the old shop rounded them.',
            'each price of the sample is the same to the cent',
          ),
          part('Compare the sums', 'Both shops have the same sums.'),
        ),
      ),
      session(
        [ran('cargo test dump', 'test result: ok. 9 passed; 0 failed', 0)],
        works('src/dump.rs', 'pub fn read() {}', 'done', 'Reads 1.2 GB in 9 s.'),
      ),
      session(
        [
          {
            type: 'reasoning',
            text: 'The old shop rounded each position, not the sum. The test should have such an order.',
          },
          ran(
            'rg --line-number "fn round" old/',
            'old/price.php:41:function round_price($p) { return floor($p * 100 + 0.5) / 100; }',
            0,
          ),
          {
            type: 'file_change',
            changes: [
              { path: 'src/money.rs', kind: 'add' },
              { path: 'tests/prices.rs', kind: 'update' },
            ],
            status: 'completed',
          },
          ran(
            'cargo test prices',
            "running 4 tests\ntest prices::half_a_cent ... FAILED\n\nthread 'prices::half_a_cent' panicked at tests/prices.rs:27:5:\n  left: 1999\n right: 2000\ntest result: FAILED. 3 passed; 1 failed",
            101,
          ),
          {
            type: 'agent_message',
            text: 'Half a cent is rounded down. I convert each position before adding them up.',
          },
        ],
        'gate still\n' + answer('retry', 'More to do.'),
      ),
    ],
    guard: [green(9)],
    gates: ['still'],
  },
  {
    name: 'mobile',
    goal: 'The app starts without a network',
    end: 'failed',
    limits: 'max_consecutive_faults = 2\n',
    agent: [say('panicked at cli.rs:1') + 'exit 101\n', say('panicked at cli.rs:1') + 'exit 101\n'],
    guard: [],
  },
  {
    name: 'manual',
    goal: 'Every command has an example that runs',
    end: 'limit',
    limits: 'max_iterations = 2\n',
    agent: [
      works('docs/a.md', 'runs', 'retry', 'Seven of twenty commands have one.'),
      works('docs/b.md', 'runs', 'retry', 'Thirteen of twenty commands have one.'),
    ],
    guard: [],
  },
  {
    name: 'search',
    goal: 'Search finds words with a typing error',
    end: 'waiting',
    agent: [
      works('src/trigram.rs', 'pub fn trigrams() {}', 'retry', 'An index of trigrams.'),
      `answer ${quoted(JSON.stringify({ error: { class: 'unavailable', until: new Date(Date.now() + 5_400_000).toISOString().replace(/\.\d+/, ''), message: 'usage limit reached' } }))}\n`,
    ],
    guard: [],
  },
];

/** Lets all of them run until each is in its state; returns the home, whose repositories are `named`; `at` is its folder. */
export async function night(at = null) {
  const home = await Home.empty('max_repositories = 16\n', at);
  const named = {};
  try {
    for (const one of REPOSITORIES) named[one.name] = await begin(home, one);
    for (const one of REPOSITORIES) await reach(named[one.name], one);
  } catch (error) {
    await home.end();
    throw error;
  }
  return Object.assign(home, { named });
}

async function begin(home, { name, goal, agent, guard, gates = [], kind, ...settings }) {
  const repo = await home.repository(name, { kind, ...settings });
  const program = kind ?? 'agent';
  await repo.gates(...gates);
  for (const [at, text] of agent.entries()) await repo.script(program, at + 1, text);
  for (const [at, text] of guard.entries()) await repo.script('guard', at + 1, text);
  if (name === 'payment-gateway') await repo.script('agent', 1, `gate first\n${agent[0]}`);
  await repo.ctl('start', '--yes', '--id', `${name}-1`, '-m', goal);
  return repo;
}

const stateOf = async (repo) => JSON.parse((await repo.ctl('status', '--json')).stdout);

async function reach(repo, { name, end, agent, kind = 'agent' }) {
  if (name === 'payment-gateway') {
    await repo.ctl('pause');
    await repo.open('first');
    await until(repo, (run) => run.summary.state === 'paused');
    await writeFile(join(repo.repo, 'README.md'), 'Changed by hand.\n');
    await repo.ctl('resume').catch(() => undefined);
  }
  await until(repo, (run) => run.summary.state === end);
  if (end === 'running')
    while ((await readFile(join(repo.path, `${kind}.count`), 'utf8')).trim() !== String(agent.length))
      await soon();
}

const soon = () => new Promise((go) => setTimeout(go, 50));

async function until(repo, holds) {
  for (let tries = 0; tries < 1200; tries += 1) {
    const said = await stateOf(repo);
    if (holds(said.run ?? said.status.run)) return;
    await soon();
  }
  throw new Error(`${repo.repo} does not get there: ${JSON.stringify((await stateOf(repo)).run?.summary)}`);
}
