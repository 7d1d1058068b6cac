// What to show of a failed check: what it is called and what did not hold, before where it was told and without what only
// frames it.
import type { ReportedFailure } from '../wire';
import { bare } from './ansi';

/** Lines that frame others: rules, headings of sections, sums. */
const FRAME =
  /^\W*$|^\s*([-=_*#])\1{2,}.*\1{2,}\s*$|^\s*(failures|failed|errors?|running \d+ tests?|traceback .*|test result: .*):?\s*$|RUST_BACKTRACE|^make(\[\d+\])?: /i;
/** Lines that say what did not hold, and lines that say that something went wrong. */
const CLAIM =
  /\bassert|\bexpected\b|\bactual\b|\breceived\b|\bgot\b|^\s*(left|right|want(ed)?)\s*[:=]|^E\s{2,}\S/i;
const TROUBLE = /\berror(\[\w+\])?:|\w(Error|Exception)\b|panicked at|\bfatal\b/;

/** Place of the line that says what failed. */
function placeOf(lines: readonly string[], name: string): number {
  const isNaming = (line: string) => name !== '' && line.includes(name);
  const tries = [
    (line: string) => CLAIM.test(line) && !isNaming(line),
    (line: string) => TROUBLE.test(line),
    (line: string) => !isNaming(line),
    () => true,
  ];
  for (const fits of tries) {
    const at = lines.findIndex((line) => !FRAME.test(line) && fits(line));
    if (at >= 0) return at;
  }
  return 0;
}

/** The line of a failure that says what failed, as the log has it. */
export const claimOf = ({ name, lines }: ReportedFailure): string =>
  lines[placeOf(lines.map(bare), name)] ?? name;

/** The name, then what did not hold, then the rest. */
export function toldOf(failure: ReportedFailure): string[] {
  const { name } = failure;
  const lines = failure.lines.map(bare);
  const at = placeOf(lines, name);
  const isNaming = (line: string) => name !== '' && line.includes(name);
  const naming = lines.find((line) => isNaming(line) && !FRAME.test(line) && !TROUBLE.test(line));
  const head = naming ?? name;
  const rest = [...lines.slice(at), ...lines.slice(0, at)];
  return [head, ...rest.filter((line) => line !== head && !FRAME.test(line))].filter(Boolean);
}
