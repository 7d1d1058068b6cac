// The steps of an agent's work as entries: a tool and what came of it belong together.
import type { ActivityKind } from '../wire';
import { isError } from './log';

/** A step as the server tells it. */
export interface Told {
  offset: number;
  what: ActivityKind;
  text: string;
}

/** An entry of the list. */
export interface Entry {
  key: number;
  what: ActivityKind;
  text: string;
  /** What came of a tool, where that was told. */
  result: string | null;
  failed: boolean;
}

const looks: Record<ActivityKind, { icon: string; word: string }> = {
  message: { icon: '▪', word: 'says' },
  reasoning: { icon: '·', word: 'thinks' },
  tool: { icon: '$', word: 'runs' },
  tool_result: { icon: '└', word: 'result' },
  file_change: { icon: '±', word: 'changes' },
  notice: { icon: '!', word: 'notice' },
};
export const lookOfStep = (what: ActivityKind) => looks[what] ?? { icon: '?', word: what };

/** Puts results to the tools before them. */
export function entries(steps: readonly Told[]): Entry[] {
  const found: Entry[] = [];
  for (const step of steps) {
    const last = found.at(-1);
    if (step.what === 'tool_result' && last?.what === 'tool' && last.result === null) {
      last.result = shortened(step.text, last.text);
      last.failed = tellsFailure(step.text);
    } else {
      const failed = step.what === 'notice' || (step.what === 'tool_result' && tellsFailure(step.text));
      const text = step.what === 'message' ? readable(step.text) : step.text;
      found.push({ key: found.length, what: step.what, text, result: null, failed });
    }
  }
  return found;
}

/** Without the command, where that stands above it. */
function shortened(result: string, tool: string): string {
  const said = `: ${tool}`;
  const at = result.indexOf(said);
  const rest = result.slice(at + said.length);
  return at >= 0 && /^(\n|$)/.test(rest) ? result.slice(0, at) + rest : result;
}

/** An answer in the words of a person; any other message as it is. */
function readable(message: string): string {
  if (!message.startsWith('{')) return message;
  try {
    const { status, summary } = JSON.parse(message);
    return typeof status === 'string' && typeof summary === 'string' ? `${status}: ${summary}` : message;
  } catch {
    return message;
  }
}

/** Whether what came of a tool tells of a failure: an exit code, else words of it. */
function tellsFailure(text: string): boolean {
  const code = /\bexit(?:ed)?(?: code| status)?[ :=]+(-?\d+)/i.exec(text)?.[1];
  return code === undefined ? text.split('\n').some(isError) : code !== '0';
}

/** Entries that have a text and, where asked for, a failure. */
export function siftEntries(list: readonly Entry[], search: string, errorsOnly: boolean): Entry[] {
  const wanted = search.trim().toLowerCase();
  return list.filter(
    (entry) =>
      (!errorsOnly || entry.failed) &&
      (wanted === '' || `${entry.text}\n${entry.result ?? ''}`.toLowerCase().includes(wanted)),
  );
}
