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

/** A repository whose agent and guard do what a test says of each of their runs. */
class Repository {
  /** Scripts and gates are in the folder `path`, the work tree is `repo`. */
  constructor(path, repo, env) {
    Object.assign(this, { path, repo, env });
  }

  /** The agent is a command, or stands in for `codex`, of whose output the form is known; `limits` and `more` stand in the configuration. */
  async begin({ kind = 'command', model = null, limits = '', more = '' } = {}) {
    await mkdir(this.path, { recursive: true, mode: 0o700 });
    await mkdir(this.repo, { recursive: true, mode: 0o700 });
    for (const name of ['agent', 'codex', 'guard']) {
      await writeFile(join(this.path, name), scripted(name));
      await chmod(join(this.path, name), 0o700);
      await writeFile(join(this.path, `${name}.count`), '0\n');
    }
    await writeFile(join(this.repo, 'README.md'), 'A repository.\n');
    await this.git('init', '--quiet');
    await this.#commit('Begin');
    await this.ctl('init');
    const command = (name) => JSON.stringify([join(this.path, name)]);
    const executor =
      (kind === 'command' ? `kind = "command"\ncommand = ${command('agent')}` : `kind = "${kind}"`) +
      (model === null ? '' : `\nmodel = "${model}"`);
    await writeFile(
      join(this.repo, '.runner/state/config.toml'),
      `${limits}[executor]\n${executor}\n\n[guard]\ncommand = ${command('guard')}\nbaseline = false\nflakes = false\n${more}`,
    );
    await this.#commit('Set up the runner');
  }

  async #commit(message) {
    await this.git('add', '--all');
    await this.git('commit', '--quiet', '--message', message);
  }

  git = (...args) => run('git', args, { cwd: this.repo, env: this.env });

  /** Says what the n-th session of the agent, or the n-th run of the guard, does. */
  script = (name, n, text) => writeFile(join(this.path, `${name}.${n}.sh`), text);

  /** Makes gates for the scripts to wait at. */
  gates = (...names) => Promise.all(names.map((name) => run('mkfifo', [join(this.path, name)])));

  /** Opens a gate; returns when the script that waits there goes on. */
  open = (name) => writeFile(join(this.path, name), '\n');

  ctl = (...args) => run(join(programs, 'runnerctl'), args, { cwd: this.repo, env: this.env });
}

export class Home extends Repository {
  #children = new Set();
  #daemon;

  /** A home with a daemon and one repository. */
  static async make(kind = 'command') {
    const home = await Home.empty();
    await home.begin({ kind });
    return home;
  }

  /** A home with a daemon and no repository; `settings` are the daemon's, `at` a folder that is not there yet. */
  static async empty(settings = '', at = null) {
    if (at !== null) await mkdir(at, { mode: 0o700 });
    const path = await realpath(at ?? (await mkdtemp(join(tmpdir(), 'runner-page-'))));
    for (const folder of ['src/roman', 'run', 'state', 'tmp', 'config/runnerd'])
      await mkdir(join(path, folder), { recursive: true, mode: 0o700 });
    const home = new Home(path, join(path, 'src/roman'), {
      PATH: `${path}:${process.env.PATH}`,
      CODEX_API_KEY: 'a key that opens nothing',
      HOME: path,
      TMPDIR: join(path, 'tmp'),
      LANG: 'C.UTF-8',
      GIT_CONFIG_NOSYSTEM: '1',
      XDG_CONFIG_HOME: join(path, 'config'),
      XDG_STATE_HOME: join(path, 'state'),
      XDG_RUNTIME_DIR: join(path, 'run'),
      RUNNERD_STATE: join(path, 'state'),
      RUNNERD_SOCKET: join(path, 'run/s'),
    });
    await writeFile(
      join(path, '.gitconfig'),
      '[user]\n\tname = Kit\n\temail = kit@localhost\n[init]\n\tdefaultBranch = main\n',
    );
    await writeFile(join(path, 'config/runnerd/config.toml'), settings);
    await home.daemon();
    return home;
  }

  /** Another repository in this home. */
  async repository(name, settings) {
    const env = { ...this.env, PATH: `${join(this.path, 'of', name)}:${process.env.PATH}` };
    const other = new Repository(join(this.path, 'of', name), join(this.path, 'src', name), env);
    await other.begin(settings);
    return other;
  }

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
  async view(...options) {
    const child = this.#spawn('runner-ui', ['--json', ...options]);
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
    await this.ctl('--no-spawn', 'daemon', 'stop').catch(() => undefined);
    const gone = [...this.#children].map((child) => once(child, 'exit'));
    for (const child of this.#children) child.kill('SIGTERM');
    await Promise.all(gone);
    await rm(this.path, { recursive: true, force: true });
  }
}
