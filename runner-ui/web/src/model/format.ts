// Durations, ages, sizes, counts and money as people read them, worded as `runnerctl` words them.
import type { UsageTotal } from '../wire';

const two = (n: number) => String(Math.floor(n)).padStart(2, '0');

/** `340ms`, `1.4s`, `42s`, `3m 04s`, `1h 05m`, `2d 03h`. */
export function span(ms: number): string {
  if (ms < 1000) return `${Math.max(Math.floor(ms), 0)}ms`;
  if (ms < 10_000) return `${Math.floor(ms / 1000)}.${Math.floor((ms % 1000) / 100)}s`;
  return seconds(ms);
}

/** The same in full seconds, for what ticks. */
export function seconds(ms: number): string {
  const secs = Math.floor(Math.max(ms, 0) / 1000);
  if (secs < 60) return `${secs}s`;
  if (secs < 3600) return `${Math.floor(secs / 60)}m ${two(secs % 60)}s`;
  if (secs < 86400) return `${Math.floor(secs / 3600)}h ${two((secs % 3600) / 60)}m`;
  return `${Math.floor(secs / 86400)}d ${two((secs % 86400) / 3600)}h`;
}

/** How long ago: one unit is enough to know whether it matters. */
export function age(time: string | number, now: number): string {
  const ms = Math.max(now - (typeof time === 'number' ? time : Date.parse(time)), 0);
  const mins = Math.floor(ms / 60_000);
  if (mins < 1) return 'just now';
  if (mins < 60) return `${mins} min ago`;
  if (mins < 48 * 60) return `${Math.floor(mins / 60)} h ago`;
  return `${Math.floor(mins / 1440)} days ago`;
}

/** `0 B`, `512 B`, `1.4 kB`, `38 MB`. */
export function size(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  let amount = bytes;
  for (const unit of ['kB', 'MB', 'GB']) {
    amount /= 1000;
    if (amount < 1000) return `${amount < 10 ? Math.floor(amount * 10) / 10 : Math.floor(amount)} ${unit}`;
  }
  return `${Math.floor(amount / 1000)} TB`;
}

/** `950`, `1.2k`, `3.4M`. */
export function count(n: number): string {
  if (n < 1000) return String(n);
  const [per, unit] = n < 1_000_000 ? [1000, 'k'] : [1_000_000, 'M'];
  return `${Math.floor((n * 10) / per) / 10}${unit}`;
}

/** Millionths of a dollar as dollars, rounded up to the cent. */
export function dollars(micro: number): string {
  return `$${(Math.ceil(micro / 10_000) / 100).toFixed(2)}`;
}

/** What is known of a cost: `$0.04`, `>$0.04` where some sessions did not say, nothing where none did. */
export function knownCost(usage: UsageTotal | null | undefined): string {
  if (usage?.cost_micro_usd == null) return '';
  return (usage.cost_unknown ? '>' : '') + dollars(usage.cost_micro_usd);
}

/** Cost beside a word that says what it is: `unknown` where no session said, a dash where none ran. */
export function labelledCost(usage: UsageTotal | null | undefined): string {
  return knownCost(usage) || (usage?.sessions ? 'unknown' : '–');
}

/** What a cost leaves out, in words. */
export function costNote(usage: UsageTotal | null | undefined): string {
  if (!usage || usage.sessions === 0) return 'No session has run.';
  if (usage.cost_micro_usd == null) return 'The sessions did not say what they cost.';
  if (!usage.cost_unknown)
    return `${usage.sessions} ${usage.sessions === 1 ? 'session' : 'sessions'}, failures included.`;
  return `At least: ${usage.cost_unknown} of ${usage.sessions} sessions did not say.`;
}

/** Tokens of all kinds; null where no session said. */
export function tokens(usage: UsageTotal | null | undefined): number | null {
  const parts = [usage?.input_tokens, usage?.cached_tokens, usage?.output_tokens].filter((n) => n != null);
  return parts.length === 0 ? null : parts.reduce((sum, n) => sum + n, 0);
}

/** A time by the reader's clock, with the day where it is not today's, and with seconds where they tell times apart. */
export function clock(time: string | number, now: number, exact = false): string {
  const date = new Date(time);
  const sameDay = date.toDateString() === new Date(now).toDateString();
  const digits: Intl.DateTimeFormatOptions = { hour: '2-digit', minute: '2-digit', hour12: false };
  const at = date.toLocaleTimeString([], exact ? { ...digits, second: '2-digit' } : digits);
  return sameDay ? at : `${date.toLocaleDateString([], { day: 'numeric', month: 'short' })} ${at}`;
}
