// The journal of an iteration as entries: when, what, and the details of it. A line that is not understood is shown as it is.

export interface Entry {
  /** Milliseconds since the epoch; null where the line does not tell. */
  at: number | null;
  name: string;
  /** The details as lines of `key: value`; empty where there are none. */
  details: string[];
}

/** Most characters of a value. */
const LONGEST = 2000;

export function journal(lines: readonly string[]): Entry[] {
  return lines.filter((line) => line.trim() !== '').map(entry);
}

function entry(line: string): Entry {
  const value = parsed(line);
  const event = isObject(value) ? value.event : undefined;
  const at = isObject(value) && typeof value.at === 'string' ? Date.parse(value.at) : NaN;
  const time = Number.isNaN(at) ? null : at;
  if (typeof event === 'string') return { at: time, name: event, details: [] };
  const [name, data] = isObject(event) ? (Object.entries(event)[0] ?? []) : [];
  return name === undefined
    ? { at: null, name: line, details: [] }
    : { at: time, name, details: details(data) };
}

function details(data: unknown): string[] {
  if (!isObject(data)) return data == null ? [] : [shown(data)];
  return Object.entries(data)
    .filter(([, value]) => value !== null && value !== false && !isEmpty(value))
    .map(([key, value]) => `${key}: ${shown(value)}`);
}

const isEmpty = (value: unknown) =>
  typeof value === 'object' && value !== null && Object.keys(value).length === 0;

function shown(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return text.length > LONGEST ? `${text.slice(0, LONGEST)} …` : text;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}
