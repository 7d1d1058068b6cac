// A home of its own for a real daemon, a real server of the view and a scripted agent; nothing outside of it is touched.
// The agent and the guard wait at gates that the test opens, so that nothing depends on time.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const programs = join(
  process.env.CARGO_TARGET_DIR ?? fileURLToPath(new URL('../../../target', import.meta.url)),
  'debug',
);

// The n-th session runs what `script` says of it; a gate is a pipe on which it waits.
const scripted = (name) => `#!/bin/sh
if [ "$1" = --version ]; then echo 'codex-cli 0.169.0'; exit; fi
while [ $# -gt 0 ]; do [ "$1" != -o ] || RUNNER_OUTPUT=$2; shift; done
home=$(dirname "$0")
n=$(($(cat "$home/${name}.count") + 1))
echo "$n" > "$home/${name}.count"
gate() { read -r _ < "$home/$1"; }
answer() { printf '%s' "$1" > "$RUNNER_OUTPUT"; }
. "$home/${name}.$n.sh"
`;

export class Home {
  #children = new Set();
  #daemon;

  /** The agent is a command, or stands in for `codex`, of whose output the form is known. */
  static async make(kind = 'command') {
    const home = new Home();
    home.path = await realpath(await mkdtemp(join(tmpdir(), 'runner-page-')));
    home.repo = join(home.path, 'repos/roman');
    for (const folder of ['repos/roman', 'run', 'state', 'tmp', 'config'])
      await mkdir(join(home.path, folder), { recursive: true, mode: 0o700 });
    home.env = {
      PATH: `${home.path}:${process.env.PATH}`,
      CODEX_API_KEY: 'a key that opens nothing',
      HOME: home.path,
      TMPDIR: join(home.path, 'tmp'),
      LANG: 'C.UTF-8',
      GIT_CONFIG_NOSYSTEM: '1',
      XDG_CONFIG_HOME: join(home.path, 'config'),
      XDG_STATE_HOME: join(home.path, 'state'),
      XDG_RUNTIME_DIR: join(home.path, 'run'),
      RUNNERD_STATE: join(home.path, 'state'),
      RUNNERD_SOCKET: join(home.path, 'run/s'),
    };
    await writeFile(
      join(home.path, '.gitconfig'),
      '[user]\n\tname = Kit\n\temail = kit@localhost\n[init]\n\tdefaultBranch = main\n',
    );
    await home.daemon();
    await home.#repository(kind);
    return home;
  }

  async #repository(kind) {
    for (const name of ['agent', 'codex', 'guard']) {
      await writeFile(join(this.path, name), scripted(name));
      await chmod(join(this.path, name), 0o700);
      await writeFile(join(this.path, `${name}.count`), '0\n');
    }
    await writeFile(join(this.repo, 'README.md'), 'A repository.\n');
    await this.#git('init', '--quiet');
    await this.#commit('Begin');
    await this.ctl('init');
    const command = (name) => JSON.stringify([join(this.path, name)]);
    const executor =
      kind === 'command' ? `kind = "command"\ncommand = ${command('agent')}` : `kind = "${kind}"`;
    await writeFile(
      join(this.repo, '.runner/state/config.toml'),
      `[executor]\n${executor}\n\n[guard]\ncommand = ${command('guard')}\nbaseline = false\n`,
    );
    await this.#commit('Set up the runner');
  }

  #git = (...args) => run('git', args, { cwd: this.repo, env: this.env });
  async #commit(message) {
    await this.#git('add', '--all');
    await this.#git('commit', '--quiet', '--message', message);
  }

  /** Says what the n-th session of the agent, or the n-th run of the guard, does. */
  script = (name, n, text) => writeFile(join(this.path, `${name}.${n}.sh`), text);

  /** Makes gates for the scripts to wait at. */
  gates = (...names) => Promise.all(names.map((name) => run('mkfifo', [join(this.path, name)])));

  /** Opens a gate; returns when the script that waits there goes on. */
  open = (name) => writeFile(join(this.path, name), '\n');

  ctl = (...args) => run(join(programs, 'runnerctl'), args, { cwd: this.repo, env: this.env });

  /** Starts the daemon; returns when it answers. */
  async daemon() {
    this.#daemon = this.#spawn('runnerd', []);
    while (!(await this.#answers())) {
      if (this.#daemon.exitCode !== null) throw new Error('the daemon ended');
    }
  }

  #answers = () =>
    this.ctl('--no-spawn', 'daemon', 'status').then(
      () => true,
      () => false,
    );

  /** Starts the server of the view; each call of what is returned gives an address, which leads to the page once. */
  async view() {
    const child = this.#spawn('runner-ui', ['--json']);
    const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
    return async () => JSON.parse((await lines.next()).value).url;
  }

  #spawn(program, args) {
    const child = spawn(join(programs, program), args, {
      cwd: this.repo,
      env: this.env,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    if (program !== 'runner-ui') child.stdout.resume();
    this.#children.add(child);
    child.on('exit', () => this.#children.delete(child));
    return child;
  }

  /** Kills the daemon as a crash would; returns when it is gone. */
  async kill() {
    const gone = once(this.#daemon, 'exit');
    this.#daemon.kill('SIGKILL');
    await gone;
  }

  async end() {
    await this.ctl('--no-spawn', 'daemon', 'stop', '--now').catch(() => undefined);
    const gone = [...this.#children].map((child) => once(child, 'exit'));
    for (const child of this.#children) child.kill('SIGTERM');
    await Promise.all(gone);
    await rm(this.path, { recursive: true, force: true });
  }
}
