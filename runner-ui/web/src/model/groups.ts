// Rows of the timeline, gathered by the task that they are parts of; and the line of tasks in which most of the time went.
import type { Bar, Row } from './timeline';
import { spentBelow, type Forest, type Spent } from './tree';

/** A line of the timeline: a task with its bars, or a parent with those of its tasks. */
export interface Line {
  node: string;
  bars: Bar[];
  /** How many tasks stand below; 0: it is a task itself. */
  tasks: number;
  folded: boolean;
  /** Whether it stands below a parent's line. */
  inner: boolean;
}

/** Tasks beyond which the parents are surveyed first. */
const MANY = 24;

/** Puts rows below their parents, in the order of the rows; a parent with one row needs no line of its own. */
export function linesOf(
  rows: readonly Row[],
  parents: ReadonlyMap<string, string | null>,
  folds: ReadonlyMap<string, boolean>,
): Line[] {
  const groups = new Map<string, Row[]>();
  for (const row of rows) {
    const parent = parents.get(row.node) ?? row.node;
    const known = groups.get(parent);
    if (known) known.push(row);
    else groups.set(parent, [row]);
  }
  const task = ({ node, bars }: Row, inner: boolean): Line => ({
    node,
    bars,
    tasks: 0,
    folded: false,
    inner,
  });
  return [...groups].flatMap(([node, below]) => {
    if (below.length === 1) return below.map((row) => task(row, false));
    const folded = folds.get(node) ?? rows.length > MANY;
    const bars = folded ? below.flatMap((row) => row.bars).sort((a, b) => a.from - b.from) : [];
    const head: Line = { node, bars, tasks: below.length, folded, inner: false };
    return folded ? [head] : [head, ...below.map((row) => task(row, true))];
  });
}

/** The tasks in which most of the time went, from the root down: at each the part that took longest. None before anything took
 *  time. */
export function longestPath(found: Forest, by: ReadonlyMap<string, Spent>): string[] {
  const path: string[] = [];
  for (let at = found.root; spentBelow(at, by).ms > 0;) {
    path.push(at.id);
    const parts = at.children.map((part) => ({ part, ms: spentBelow(part, by).ms }));
    const longest = parts.reduce((best, one) => (one.ms > best.ms ? one : best), { part: at, ms: 0 });
    if (longest.part === at) break;
    at = longest.part;
  }
  return path;
}
