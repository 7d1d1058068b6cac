// The task tree as a list of rows: what is folded, which row a key leads to, and what each node has consumed.
import type { IterationView, Node, UsageTotal } from '../wire';
import type { Tone } from './words';

/** How a node stands. */
export type NodeState = 'passed' | 'live' | 'next' | 'pending' | 'exhausted' | 'open';

/** A node in the list. */
export interface Row {
  node: Node;
  depth: number;
  /** Place among its siblings, from 1, and how many they are. */
  place: number;
  siblings: number;
  parent: string | null;
  state: NodeState;
  /** Leaves below that pass, and all of them; a leaf counts itself. */
  passed: number;
  leaves: number;
  folded: boolean;
}

/** A tree in which nodes can be found. */
export interface Forest {
  root: Node;
  /** In the order in which they are worked on. */
  nodes: Map<string, Node>;
  parents: Map<string, string | null>;
  leaves: Map<string, { passed: number; all: number }>;
}

/** Children in the order in which they are worked on. */
function inOrder(node: Node): Node[] {
  return [...node.children].sort((a, b) => a.order - b.order || (a.id < b.id ? -1 : 1));
}

/** Looks through a tree once. */
export function forest(root: Node): Forest {
  const found: Forest = { root, nodes: new Map(), parents: new Map(), leaves: new Map() };
  const todo: { node: Node; parent: string | null; seen: boolean }[] = [
    { node: root, parent: null, seen: false },
  ];
  while (todo.length > 0) {
    const top = todo.at(-1)!;
    if (top.seen) {
      todo.pop();
      found.leaves.set(top.node.id, tally(top.node, found));
      continue;
    }
    top.seen = true;
    found.nodes.set(top.node.id, top.node);
    found.parents.set(top.node.id, top.parent);
    for (const child of inOrder(top.node).reverse())
      todo.push({ node: child, parent: top.node.id, seen: false });
  }
  return found;
}

function tally(node: Node, found: Forest): { passed: number; all: number } {
  if (node.children.length === 0) return { passed: node.passes ? 1 : 0, all: 1 };
  const sum = { passed: 0, all: 0 };
  for (const child of node.children) {
    const part = found.leaves.get(child.id)!;
    sum.passed += part.passed;
    sum.all += part.all;
  }
  return sum;
}

/** Ids from a node's parent up to the root. */
export function ancestors(found: Forest, id: string): string[] {
  const above: string[] = [];
  for (let at = found.parents.get(id); at != null; at = found.parents.get(at)) above.push(at);
  return above;
}

/** What a person has folded or unfolded; other branches below the root are folded when they have passed. */
export type Folds = ReadonlyMap<string, boolean>;

/** What the run says of its tree. */
export interface Now {
  /** The node of the live iteration, else the next leaf. */
  current: string | null;
  /** Whether a session is under way on it. */
  live: boolean;
  /** Nodes that wait for a person's review. */
  pending: ReadonlySet<string>;
}

/** Whether a branch is folded. */
export function isFolded(node: Node, folds: Folds, opened: ReadonlySet<string>, isRoot = false): boolean {
  if (node.children.length === 0) return false;
  return folds.get(node.id) ?? (node.passes && !isRoot && !opened.has(node.id));
}

/** Lists the rows that are seen, top to bottom. */
export function rows(found: Forest, folds: Folds, now: Now, opened: ReadonlySet<string> = new Set()): Row[] {
  const list: Row[] = [];
  const todo = [{ node: found.root, depth: 0, place: 1, siblings: 1, parent: null as string | null }];
  while (todo.length > 0) {
    const { node, depth, place, siblings, parent } = todo.pop()!;
    const leaves = found.leaves.get(node.id)!;
    const folded = isFolded(node, folds, opened, depth === 0);
    list.push({
      ...{ node, depth, place, siblings, parent, folded },
      ...{ state: stateOf(node, now), passed: leaves.passed, leaves: leaves.all },
    });
    if (folded) continue;
    const children = inOrder(node);
    for (let at = children.length - 1; at >= 0; at -= 1) {
      todo.push({
        node: children[at]!,
        depth: depth + 1,
        place: at + 1,
        siblings: children.length,
        parent: node.id,
      });
    }
  }
  return list;
}

/** How a node stands. */
export function stateOf(node: Node, now: Now): NodeState {
  if (node.passes) return 'passed';
  if (now.pending.has(node.id)) return 'pending';
  const isCurrent = node.id === now.current;
  if (isCurrent && now.live) return 'live';
  // What has no attempts left is not next, though selection stands there.
  if (node.children.length === 0 && node.attempts >= node.max_attempts) return 'exhausted';
  return isCurrent ? 'next' : 'open';
}

const looks: Record<NodeState, { icon: string; word: string; tone: Tone }> = {
  passed: { icon: '✔', word: 'passed', tone: 'good' },
  live: { icon: '●', word: 'at work', tone: 'live' },
  next: { icon: '▸', word: 'next', tone: 'live' },
  pending: { icon: '◇', word: 'awaiting review', tone: 'look' },
  exhausted: { icon: '✖', word: 'no attempts left', tone: 'bad' },
  open: { icon: '○', word: 'open', tone: 'quiet' },
};
export const lookOf = (state: NodeState) => looks[state];

/** What a key does in the tree. */
export type Move = { focus: string } | { fold: string; folded: boolean } | { choose: string } | null;

/** The keys of the tree pattern: arrows, Home, End, Enter, `*`, and letters to type ahead. */
export function press(key: string, list: Row[], focus: string | null): Move {
  const at = Math.max(
    list.findIndex((row) => row.node.id === focus),
    0,
  );
  const row = list[at];
  if (!row) return null;
  const to = (index: number): Move => {
    const target = list[Math.min(Math.max(index, 0), list.length - 1)];
    return target ? { focus: target.node.id } : null;
  };
  const branch = row.node.children.length > 0;
  if (key === 'ArrowDown') return to(at + 1);
  if (key === 'ArrowUp') return to(at - 1);
  if (key === 'Home') return to(0);
  if (key === 'End') return to(list.length - 1);
  if (key === 'PageDown') return to(at + 20);
  if (key === 'PageUp') return to(at - 20);
  if (key === 'Enter' || key === ' ') return { choose: row.node.id };
  if (key === 'ArrowRight')
    return !branch ? null : row.folded ? { fold: row.node.id, folded: false } : to(at + 1);
  if (key === 'ArrowLeft') {
    if (branch && !row.folded) return { fold: row.node.id, folded: true };
    return row.parent === null ? null : { focus: row.parent };
  }
  return null;
}

/** The next row, in a circle, whose title begins with what was typed. */
export function typeAhead(typed: string, list: Row[], focus: string | null): string | null {
  const wanted = typed.toLowerCase();
  const from = list.findIndex((row) => row.node.id === focus);
  const first = typed.length > 1 ? from : from + 1;
  for (let step = 0; step < list.length; step += 1) {
    const row = list[(Math.max(first, 0) + step) % list.length];
    if (row?.node.title.toLowerCase().startsWith(wanted)) return row.node.id;
  }
  return null;
}

/** What the sessions on a node took. */
export interface Spent {
  ms: number;
  usage: UsageTotal;
  iterations: number;
}

/** Adds up iterations by node, those that failed included. */
export function spent(iterations: readonly IterationView[]): Map<string, Spent> {
  const nodes = new Map<string, Spent>();
  for (const view of iterations) {
    const sum = nodes.get(view.node) ?? { ms: 0, usage: nothing(), iterations: 0 };
    sum.ms += view.duration_ms ?? 0;
    sum.iterations += 1;
    if (view.usage) sum.usage = plus(sum.usage, view.usage);
    nodes.set(view.node, sum);
  }
  return nodes;
}

/** The sum of what a node and all below it took. */
export function spentBelow(node: Node, by: ReadonlyMap<string, Spent>): Spent {
  const sum: Spent = { ms: 0, usage: nothing(), iterations: 0 };
  const todo = [node];
  while (todo.length > 0) {
    const next = todo.pop()!;
    const own = by.get(next.id);
    if (own) {
      sum.ms += own.ms;
      sum.iterations += own.iterations;
      sum.usage = plus(sum.usage, own.usage);
    }
    todo.push(...next.children);
  }
  return sum;
}

/** Consumption of no session. */
export const nothing = (): UsageTotal => ({ sessions: 0 });

/** The sum of two; null where neither is known. */
export function plus(a: UsageTotal, b: UsageTotal): UsageTotal {
  const add = (x?: number | null, y?: number | null) => (x == null && y == null ? null : (x ?? 0) + (y ?? 0));
  return {
    sessions: a.sessions + b.sessions,
    input_tokens: add(a.input_tokens, b.input_tokens),
    cached_tokens: add(a.cached_tokens, b.cached_tokens),
    output_tokens: add(a.output_tokens, b.output_tokens),
    cost_micro_usd: add(a.cost_micro_usd, b.cost_micro_usd),
    tokens_unknown: (a.tokens_unknown ?? 0) + (b.tokens_unknown ?? 0),
    cost_unknown: (a.cost_unknown ?? 0) + (b.cost_unknown ?? 0),
  };
}
