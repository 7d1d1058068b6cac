// What an event makes stale. Events say what has happened; the state itself is read anew.
import type { Event, PhaseName } from '../wire';
import type { Message } from '../events';
import type { Live } from './timeline';

/** What the page holds of a repository and may have to read anew. */
export type Stale = 'status' | 'tree' | 'iterations' | 'runs' | 'questions' | 'memory';

export const everything: Stale[] = ['status', 'tree', 'iterations', 'runs', 'questions', 'memory'];

const stale: Record<string, Stale[]> = {
  run_state_changed: ['status', 'runs', 'tree'],
  tree_changed: ['tree', 'status'],
  iteration_added: ['iterations', 'status', 'tree', 'memory'],
  phase_changed: ['status'],
  question: ['questions', 'status'],
  commit: ['status', 'memory', 'questions'],
  outage: ['status'],
  obstacle: ['status'],
  reverted: ['status'],
  secrets: ['status'],
  refs: ['status'],
};

/** What a message says of the page's knowledge. */
export type News =
  | { kind: 'all' }
  | { kind: 'gone' }
  | { kind: 'began' }
  | { kind: 'stale'; repo: string; what: Stale[]; event: Event }
  | { kind: 'output'; repo: string; run: string | null; iter: number | null; phase: PhaseName | 'activity' }
  | { kind: 'nothing' };

/** Reads a message of the stream; one that is not understood is skipped. */
export function newsOf(message: Message): News {
  if (message.event === 'resync' || message.event === 'daemon_back') return { kind: 'all' };
  if (message.event === 'daemon_gone') return { kind: 'gone' };
  // Output is not kept: what came between two streams is read on.
  if (message.event === 'hello') return { kind: 'began' };
  const event = eventOf(message.data);
  if (!event?.repo) return { kind: 'nothing' };
  const { repo, run = null, iter = null } = event;
  if (event.kind === 'output') return { kind: 'output', repo, run, iter, phase: event.data.phase };
  if (event.kind === 'activity') return { kind: 'output', repo, run, iter, phase: 'activity' };
  const what = stale[message.event];
  return what ? { kind: 'stale', repo, what, event } : { kind: 'nothing' };
}

function eventOf(data: string): Event | null {
  try {
    const value: unknown = JSON.parse(data);
    return value !== null && typeof value === 'object' && 'kind' in value ? (value as Event) : null;
  } catch {
    return null;
  }
}

/** The phases of the live iteration after an event; what a new daemon does again takes the place of what the old one did. */
export function enter(live: Live | null, event: Event): Live | null {
  if (event.kind !== 'phase' || event.iter == null) return live;
  const { phase, node } = event.data;
  const at = Date.parse(event.time);
  if (phase === 'over') return null;
  if (!live || live.iter !== event.iter)
    return { iter: event.iter, node: node ?? '', from: at, entered: [{ phase, at }] };
  const known = live.entered.findIndex((entry) => entry.phase === phase);
  const before = known < 0 ? live.entered : live.entered.slice(0, known);
  return { ...live, node: node ?? live.node, entered: [...before, { phase, at }] };
}

/** Both what events told of the live iteration and what the state says of it. */
export function agree(heard: Live | null, told: Live | null): Live | null {
  if (!told) return null;
  if (!heard || heard.iter !== told.iter) return told;
  const last = told.entered[0]!;
  const known = heard.entered.some((entry) => entry.phase === last.phase);
  const entered = known ? heard.entered : [...heard.entered, last];
  return { ...told, entered };
}
