// Commands as a person pastes them into a shell: every word quoted where a shell would take it apart.
import type { Command } from '../wire';

/** A word as a shell reads it. */
export function quoted(word: string): string {
  if (/^[A-Za-z0-9_./=:,+@%-]+$/.test(word)) return word;
  return `'${word.replaceAll("'", `'\\''`)}'`;
}

/** Programs that can be told where to work. */
const PLACED = ['runnerctl', 'git'];

/** A command as it is typed by somebody who may be anywhere; its words alone where the place has no text. */
export function typed(command: Pick<Command, 'argv'>, place: unknown): string {
  const [program = '', ...rest] = command.argv;
  const where = typeof place === 'string' && PLACED.includes(program) ? ['-C', place] : [];
  return [program, ...where, ...rest].map(quoted).join(' ');
}
