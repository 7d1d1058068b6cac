// Worlds for the stand-in: small enough to look at, hostile, or as large as a run may become.

const NOW = Date.now();
const at = (ms) => new Date(NOW + ms).toISOString();
export const HEALTH = {
  version: '0.1.0',
  started_at: at(-3_600_000),
  connected: true,
  as_of: at(0),
  static: false,
  only: null,
  daemon: null,
};

/** What an agent may write into any field. */
export const HOSTILE =
  '<img src=x onerror="window.pwned=1"><script>window.pwned=1</script>\u001b]0;title\u0007\u001b[31mred\u202egnp.exe\u0000';

const usage = (cost, unknown = 0) => ({
  sessions: 1,
  input_tokens: 12_000,
  cached_tokens: 48_000,
  output_tokens: 2_400,
  cost_micro_usd: cost,
  tokens_unknown: 0,
  cost_unknown: unknown,
});

export const node = (id, title, extra = {}) => ({
  id,
  order: 1,
  title,
  goal: `What ${title} is to do.`,
  acceptance: [`${title} is tested`],
  passes: false,
  attempts: 0,
  max_attempts: 3,
  children: [],
  ...extra,
});

/** How an iteration ended, with its phases. */
export function iteration(run, iter, node, verdict, endsIn, took, extra = {}) {
  const guard = verdict === 'Accepted' ? 'pass' : verdict === 'RedGuard' ? 'fail' : 'skipped';
  const phases = [
    ['open', 0.01],
    ['brief', 0.02],
    ['work', 0.65],
    ['inspect', 0.04],
    ...(guard === 'skipped' ? [] : [['guard', 0.22]]),
    ['settle', 0.03],
  ];
  return {
    run,
    iter,
    node,
    verdict,
    status: verdict === 'Accepted' || verdict === 'RedGuard' ? 'done' : 'retry',
    guard,
    commit: `${String(iter).padStart(8, '0')}89abcdef0123456789abcdef01234567`,
    summary: `What session ${iter} did`,
    ended_at: at(endsIn),
    duration_ms: took,
    usage: usage(120_000 + (iter % 7) * 30_000),
    agent: 'codex 0.169.0',
    wait: null,
    phases: phases.map(([phase, share]) => ({ phase, duration_ms: Math.round(took * share) })),
    ...extra,
  };
}

/** States in which a run needs a person. */
const NEEDING = ['paused', 'held', 'stuck', 'limit', 'timed_out', 'failed'];

/** The state of a repository and its run. */
export function status(id, path, run, state, extra = {}) {
  const summary = {
    id: run,
    branch: `runner/${run}`,
    path,
    goal: extra.goal ?? null,
    state,
    needs_you: NEEDING.includes(state),
    reason: extra.reason ?? null,
    queued_at: at(-9_000_000),
    ended_at: ['completed', 'stuck', 'failed'].includes(state) ? at(-600_000) : null,
  };
  return {
    repo: { id, path, held: null, queue: [summary] },
    run: {
      summary,
      wait_until: null,
      outages: [],
      phase: null,
      node: null,
      leaves_passed: 0,
      leaves_total: 1,
      iteration: 1,
      usage: usage(0),
      elapsed_ms: 5_400_000,
      baseline: 'pass',
      recent: [],
      questions: 0,
      held_back: [],
      reverted: [],
      guard_changed: [],
      secrets: [],
      notices: [],
      containment: 'cgroup',
      pending: null,
      notes: [],
      changes: [],
      ...extra,
      reason: undefined,
      goal: undefined,
    },
  };
}

/** One run with a bit of everything. */
export function small() {
  const run = 'roman-1a2b3c4d';
  const tree = node('root', 'A command that converts Roman numerals', {
    children: [
      node('encode', 'Numbers to numerals', { passes: true, attempts: 1 }),
      node('decode', 'Numerals to numbers', { passes: true, attempts: 2, order: 2 }),
      node('command', 'The command', {
        order: 3,
        children: [
          node('both', 'Either way in one command', {
            attempts: 2,
            goal: '`bin/roman` tells number and numeral apart and converts either way.',
            acceptance: ['roman MMXXVI prints 2026', 'roman 2026 prints MMXXVI'],
          }),
          node('refuse', 'Refuse what is neither', { order: 2 }),
        ],
      }),
      node('docs', 'A page that tells how it is used', { order: 4 }),
    ],
  });
  const iterations = [
    iteration(run, 1, 'root', 'Decomposed', -8_000_000, 180_000),
    iteration(run, 2, 'encode', 'Accepted', -7_600_000, 340_000),
    iteration(run, 3, 'decode', 'RedGuard', -7_100_000, 420_000),
    iteration(run, 4, 'decode', 'Accepted', -6_500_000, 510_000),
    iteration(run, 5, 'command', 'Decomposed', -2_400_000, 90_000),
    iteration(run, 6, 'both', 'Fault', -2_100_000, 200_000, { usage: usage(null, 1) }),
    iteration(run, 7, 'both', 'Retry', -1_500_000, 460_000),
    iteration(run, 8, 'both', 'RedGuard', -700_000, 520_000),
  ];
  const found = {
    status: status('r1', '/home/ada/src/roman', run, 'running', {
      goal: 'A command that converts Roman numerals',
      phase: {
        name: 'work',
        since: at(-95_000),
        iteration_since: at(-102_000),
        budget_ms: 1_800_000,
        agent: 'codex',
        obstacle: null,
        baseline: false,
      },
      node: {
        id: 'both',
        path: ['root', 'command', 'both'],
        title: 'Either way in one command',
        attempts: 2,
        max_attempts: 3,
        role: 'planner',
      },
      leaves_passed: 2,
      leaves_total: 5,
      iteration: 9,
      usage: { ...usage(1_520_000, 1), sessions: 9 },
      questions: 1,
      notices: ['the log of iteration 6 is not complete'],
      held_back: ['.env'],
      baseline: 'pass',
    }),
    tree: { tree: { version: 1, root: tree }, digest: 'd', current: 'both', state: 'running' },
    runs: [],
    iterations,
    memory: {
      commit: null,
      files: [
        {
          name: 'GOAL.md',
          text: '# A command that converts Roman numerals\n\nBoth ways, and refuses what is neither.\n',
        },
        { name: 'guardrails.md', text: '- Run `just ci` before you say that you are done.\n' },
      ],
    },
    questions: [
      { id: 'q1a2', text: 'Is a lower-case numeral one?', answer: null, path: '/home/ada/src/roman', run },
      {
        id: 'q0ff',
        text: 'Which numbers are there?',
        answer: '1 to 3999.',
        path: '/home/ada/src/roman',
        run,
      },
    ],
    config: {
      file: '/home/ada/src/roman/.runner/config.toml',
      settings: [
        { key: 'guard.command', value: '["just", "ci"]', origin: 'file', place: '.runner/config.toml:3' },
        { key: 'run.max_attempts', value: '3', origin: 'default', place: null },
      ],
      daemon_file: '/home/ada/.config/runner/daemon.toml',
      daemon_settings: [],
    },
    live: (iter) => iter === '9',
    failures: (iter) =>
      iter === '8' || iter === '30'
        ? [{ name: 'roman 2026', lines: ['not ok roman 2026', '  expected MMXXVI'] }]
        : [],
    steps: () => [
      {
        offset: 0,
        what: 'reasoning',
        text: 'The command has to tell numbers and numerals apart. A number is digits only.',
      },
      { offset: 1, what: 'tool', text: 'just test' },
      {
        offset: 2,
        what: 'tool_result',
        text: 'ok 1 - encode 1994\nok 2 - decode MCMXCIV\nnot ok 3 - roman 2026\n# expected MMXXVI\n# got usage\nexit code 1\n1..3\nfailed',
      },
      { offset: 3, what: 'file_change', text: 'bin/roman\ntests/command_test.sh' },
      {
        offset: 4,
        what: 'message',
        text: 'The command converts either way now. One check is still red: `roman IIII` should be refused, which is the next task.',
      },
    ],
    text: (iter, name) => texts[name] && Buffer.from(texts[name]),
  };
  const repos = [
    found.status,
    status('r2', '/home/ada/src/calc', 'calc-77aa', 'stuck', {
      goal: 'A calculator that explains each step',
      recent: [iteration('calc-77aa', 30, 'parser.lex', 'RedGuard', -640_000, 300_000)],
      reason: {
        message: 'parser.lex has used all of its 3 attempts',
        command:
          'runnerctl retry parser.lex --resume; or runnerctl edit, or runnerctl add parser.lex --title TITLE --goal GOAL, then: runnerctl resume',
        commands: [
          { label: 'Retry the task', argv: ['runnerctl', 'retry', 'parser.lex', '--resume'] },
          { label: 'Edit the task tree', argv: ['runnerctl', 'edit'] },
          { label: 'Continue the run', argv: ['runnerctl', 'resume'] },
        ],
      },
      leaves_passed: 7,
      leaves_total: 12,
      iteration: 31,
      usage: { ...usage(8_130_000), sessions: 30 },
    }),
    status('r3', '/home/ada/src/website', 'site-00e1', 'completed', {
      goal: 'The site loads within a second on a phone',
      leaves_passed: 18,
      leaves_total: 18,
      iteration: 25,
      usage: { ...usage(4_410_000), sessions: 24 },
    }),
    status('r4', '/home/ada/src/importer', 'imp-9b2c', 'waiting', {
      goal: 'Import the orders of the old shop',
      reason: { message: 'claude is not available: the limit of this window is used up', command: null },
      wait_until: at(2_000_000),
      leaves_passed: 3,
      leaves_total: 9,
      iteration: 6,
      usage: { ...usage(2_000_000), sessions: 6 },
    }),
    status('r5', '/home/ada/src/payment-gateway', 'held-1', 'held', {
      goal: 'Refunds are idempotent',
      reason: {
        message:
          'somebody has switched to branch main while the run was paused; the work tree is to be on runner/held-1',
        command: 'git switch runner/held-1 && runnerctl resume',
        commands: [
          { label: 'Check out the branch', argv: ['git', 'switch', 'runner/held-1'] },
          { label: 'Continue the run', argv: ['runnerctl', 'resume'] },
        ],
      },
      leaves_total: 4,
      iteration: 2,
    }),
  ];
  return {
    health: HEALTH,
    repos,
    of: (id) => (id === 'r1' ? found : { ...found, status: repos.find((one) => one.repo.id === id) }),
    found,
  };
}

const texts = {
  'guard.log':
    '\u001b[1mjust ci\u001b[0m\nrunning 3 checks\n\u001b[32mok\u001b[0m encode\n\u001b[31mnot ok\u001b[0m roman 2026\n  expected \u001b[33mMMXXVI\u001b[0m\nerror: 1 of 3 checks failed\n',
  'executor.log':
    '{"type":"thread.started"}\n{"type":"turn.started"}\n{"type":"item.completed","item":{"type":"agent_message","text":"hello"}}\n',
  diff: 'diff --git a/bin/roman b/bin/roman\nindex 0..1 100755\n--- a/bin/roman\n+++ b/bin/roman\n@@ -1,4 +1,5 @@\n #!/bin/sh\n-exec encode "$1"\n+case $1 in\n+*[!0-9]*) exec decode "$1" ;;\n+*) exec encode "$1" ;;\n+esac\n # end\n # of file\n',
  prompt:
    '# Task\n\nYou work on one task of a tree.\n\n## Goal\n\n`bin/roman` tells number and numeral apart.\n',
  events:
    '{"at":"2026-01-01T10:00:00Z","event":{"opened":{"iter":8,"node":"both"}}}\n{"at":"2026-01-01T10:00:02Z","event":"briefed"}\n{"at":"2026-01-01T10:08:00Z","event":{"guard_ended":{"how":{"exited":1}}}}\n',
};

/** A run that got stuck in the night: many iterations, and a guard whose failure is in the middle of its log. */
export function morning() {
  const world = small();
  const run = 'calc-77aa';
  const lines = Array.from({ length: 400 }, (_, at) =>
    at === 180 ? 'not ok 181 - parses ((' : `ok ${at + 1} - case ${at + 1}`,
  );
  lines.splice(181, 0, '  expected an error, got 3');
  const leaf = { attempts: 3, max_attempts: 3 };
  const tree = node('root', 'A calculator that explains each step', {
    children: [
      node('parser', 'The parser', {
        children: [node('parser.lex', 'Tokens', leaf), node('parser.rest', 'The rest')],
      }),
    ],
  });
  const iterations = Array.from({ length: 30 }, (_, at) =>
    iteration(run, at + 1, 'parser.lex', at === 29 ? 'RedGuard' : 'Retry', (at - 30) * 60_000, 50_000),
  );
  const files = ['.runner/state/task_tree.json', '.runner/state/run_state.json', 'src/lex.rs', 'src/main.rs'];
  const patch = (path) =>
    `diff --git a/${path} b/${path}\nindex 0..1 100644\n--- a/${path}\n+++ b/${path}\n@@ -1,1 +1,40 @@\n-old\n${Array.from({ length: 40 }, (_, n) => `+line ${n} of ${path}\n`).join('')}`;
  const found = {
    ...world.found,
    status: world.repos[1],
    tree: { tree: { version: 1, root: tree }, digest: 'd', current: 'parser.lex', state: 'stuck' },
    iterations,
    live: () => false,
    failures: (iter) =>
      iter === '30'
        ? [{ name: 'parses ((', lines: ['not ok 181 - parses ((', '  expected an error, got 3'] }]
        : [],
    text: (iter, name) =>
      name === 'guard.log'
        ? Buffer.from(`${lines.join('\n')}\nmake: *** [test] Error 1\n`)
        : name === 'diff'
          ? Buffer.from(files.map(patch).join(''))
          : Buffer.from(Array.from({ length: 300 }, (_, n) => `step ${n}`).join('\n')),
  };
  found.status.run.node = {
    id: 'parser.lex',
    path: ['root', 'parser', 'parser.lex'],
    title: 'Tokens',
    attempts: 3,
    max_attempts: 3,
    role: 'planner',
  };
  return { ...world, of: () => found, found };
}

/** A world whose server was started to steer. */
export function steering(world) {
  world.health = { ...world.health, steers: true };
  return Object.assign(world, { token: 'look', steerToken: 'steer' });
}

/** Hostile text in every field that an agent can write. */
export function hostile() {
  const world = small();
  const found = world.found;
  const spoil = (one) => {
    one.title = HOSTILE;
    one.goal = HOSTILE;
    one.acceptance = [HOSTILE];
    one.children.forEach(spoil);
  };
  spoil(found.tree.tree.root);
  for (const view of found.iterations) Object.assign(view, { summary: HOSTILE, agent: HOSTILE });
  Object.assign(found.status.run, {
    notices: [HOSTILE],
    reverted: [HOSTILE],
    held_back: [HOSTILE],
    guard_changed: [HOSTILE],
  });
  found.status.run.node.title = HOSTILE;
  Object.assign(found.status.run.summary, { state: 'stuck', needs_you: true });
  found.status.run.phase = null;
  found.status.run.summary.reason = { message: HOSTILE, command: `runnerctl ${HOSTILE}` };
  found.memory.files = [{ name: HOSTILE, text: HOSTILE }];
  found.questions = [
    { id: 'q1', text: HOSTILE, answer: HOSTILE, path: '/x', run: 'x' },
    { id: 'q2', text: HOSTILE, answer: null, path: '/x', run: 'x' },
  ];
  found.config.settings = [{ key: HOSTILE, value: HOSTILE, origin: 'file', place: HOSTILE }];
  const kinds = ['message', 'reasoning', 'tool', 'tool_result', 'file_change', 'notice'];
  found.steps = () => kinds.map((what, offset) => ({ offset, what, text: HOSTILE }));
  found.text = () => Buffer.from(`${HOSTILE}\n`.repeat(3));
  found.live = () => false;
  return world;
}

/** 50 repositories, a tree of 20,000 nodes, 2,000 iterations, and logs of 10 MB. */
export function large() {
  const run = 'large-1';
  let made = 1;
  const grow = (id, depth) => {
    const children =
      depth === 0
        ? []
        : Array.from(
            { length: depth === 4 ? 20 : 10 },
            (_, at) => made < 20_000 && (made += 1) && grow(`${id}.${at + 1}`, depth - 1),
          ).filter(Boolean);
    return node(id, `Task ${id}`, { children, order: Number(id.split('.').at(-1)) || 1 });
  };
  const root = grow('1', 4);
  const leaves = [];
  const collect = (one) => (one.children.length === 0 ? leaves.push(one) : one.children.forEach(collect));
  collect(root);
  const verdicts = [
    'Accepted',
    'Accepted',
    'RedGuard',
    'Accepted',
    'Retry',
    'Fault',
    'Accepted',
    'Unavailable',
  ];
  const iterations = [];
  let leaf = 0;
  for (let iter = 1; iter <= 2000; iter += 1) {
    const verdict = verdicts[iter % verdicts.length];
    iterations.push(iteration(run, iter, leaves[leaf].id, verdict, (iter - 2001) * 120_000, 90_000));
    if (verdict === 'Accepted') leaves[leaf++].passes = true;
  }
  const settle = (one) => (
    one.children.forEach(settle),
    one.children.length > 0 && (one.passes = one.children.every((child) => child.passes))
  );
  settle(root);
  const line = (n) =>
    `${n} \u001b[32mok\u001b[0m test_${n} of a suite that prints a line of about a hundred characters for each of its tests\n`;
  const log = Buffer.from(Array.from({ length: 95_000 }, (_, n) => line(n + 1)).join(''));
  const found = {
    ...small().found,
    iterations,
    status: status('big', '/home/ada/src/big', run, 'paused', {
      leaves_passed: leaf,
      leaves_total: leaves.length,
      iteration: 2001,
      usage: { ...usage(300_000_000), sessions: 2000 },
    }),
    tree: { tree: { version: 1, root }, digest: 'd', current: leaves[leaf].id, state: 'paused' },
    text: () => log,
    live: () => false,
    steps: () =>
      Array.from({ length: 4000 }, (_, offset) => ({
        offset,
        what: offset % 2 ? 'tool_result' : 'tool',
        text: `step ${offset}\n`.repeat(1 + (offset % 9)),
      })),
  };
  const states = ['running', 'completed', 'stuck', 'waiting', 'paused'];
  const others = Array.from({ length: 49 }, (_, at) =>
    status(`o${at}`, `/home/ada/src/project-${at}`, `run-${at}`, states[at % 5], {
      leaves_passed: at % 9,
      leaves_total: 9,
    }),
  );
  return {
    health: HEALTH,
    repos: [found.status, ...others],
    of: (id) => (id === 'big' ? found : null),
    found,
    nodes: made,
    log,
  };
}
