// Commands as a person pastes them into a shell: every word quoted where a shell would take it apart.
import type { Command } from '../wire';

/** A word as a shell reads it. */
export function quoted(word: string): string {
  if (/^[A-Za-z0-9_./=:,+@%-]+$/.test(word)) return word;
  return `'${word.replaceAll("'", `'\\''`)}'`;
}

/** Programs that can be told where to work. */
const PLACED = ['runnerctl', 'git'];

type Words = Pick<Command, 'argv'>;

/** Commands of `runnerctl` that are about a run and accept its id. */
const ABOUT_RUN =
  /^(retry|resume|edit|add|answer|approve|reject|note|pause|cancel|land|deliver|verify|log|tree|guard accept|config set)$/;

/** A command with the id of the run that it is about; null: the working tree says which one. */
export function aimed<T extends Words>(command: T, run: string | null): T {
  const [program, ...words] = command.argv;
  const verb = [words.slice(0, 1), words.slice(0, 2)].find((some) => ABOUT_RUN.test(some.join(' ')));
  if (run === null || program !== 'runnerctl' || !verb || words.includes('--run')) return command;
  return { ...command, argv: [program, ...verb, '--run', run, ...words.slice(verb.length)] };
}

/** A sentence, with the id of the run in each of its commands. */
export const toldAbout = (text: string, run: string | null): string =>
  run === null
    ? text
    : text.replace(/(?<![\w-])runnerctl ((?:guard |config )?[a-z]+)(?! --run)\b/g, (all, verb: string) =>
        ABOUT_RUN.test(verb) ? `${all} --run ${quoted(run)}` : all,
      );

/**
 * A command as it is typed by somebody who may be anywhere; its words alone where the place has no text. For a daemon on
 * another machine, `runnerctl` asks there and another program is started there.
 */
export function typed(
  { argv: [program = '', ...rest] }: Words,
  place: unknown,
  host: string | null = null,
): string {
  const where = typeof place === 'string' && PLACED.includes(program) ? ['-C', place] : [];
  const line = (...words: string[]) => words.map(quoted).join(' ');
  if (host === null) return line(program, ...where, ...rest);
  if (program === 'runnerctl') return line(program, '--host', host, ...where, ...rest);
  // What has been told to be typed here is not told again.
  if (program === 'ssh') return line(program, ...rest);
  return line('ssh', '-t', ...sshWords(host), line(program, ...where, ...rest));
}

/** What leads ssh to `ssh://[user@]host[:port]`. */
function sshWords(host: string): string[] {
  const [, user, name = '', port] = /^ssh:\/\/(?:([^@]*)@)?(.*?)(?::(\d+))?$/.exec(host) ?? [];
  return [...(user ? ['-l', user] : []), ...(port ? ['-p', port] : []), name];
}

/** A sentence, with the machine in each of its commands. */
export function toldAt(text: string, commands: readonly Words[], host: string | null): string {
  if (host === null) return text;
  const others = commands.filter((command) => command.argv[0] !== 'runnerctl');
  const told = others.reduce(
    (told, command) => told.replaceAll(typed(command, null), () => typed(command, null, host)),
    text,
  );
  // One within quotes is typed on the other machine.
  return told.replace(/(?<!['\w-])runnerctl (?!--host )/g, () => `runnerctl --host ${host} `);
}
