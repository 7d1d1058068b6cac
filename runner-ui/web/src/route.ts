// The place in the page, as it stands behind the `#` of the address: a link to it can be kept and sent.

/** What is shown of a run. */
export const sections = ['tasks', 'changes', 'timeline', 'plots', 'memory', 'questions', 'settings'] as const;
export type Section = (typeof sections)[number];

/** What is shown of an iteration. */
export const tabs = ['activity', 'log', 'guard', 'diff', 'prompt', 'review', 'events', 'compare'] as const;
export type Tab = (typeof tabs)[number];

/** A place. */
export interface Route {
  repo: string | null;
  run: string | null;
  section: Section;
  node: string | null;
  /** Number of an iteration, with `.w2` for the second try under it that left no commit. */
  iter: string | null;
  tab: Tab | null;
  /** A line of a log, from 1. */
  line: number | null;
  /** The iteration that it is compared with. */
  other: string | null;
}

export const home: Route = {
  repo: null,
  run: null,
  section: 'tasks',
  node: null,
  iter: null,
  tab: null,
  line: null,
  other: null,
};

const decode = (text: string): string => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
};

const among = <T extends string>(list: readonly T[], word: string | undefined): T | null =>
  list.find((known) => known === word) ?? null;

/** Reads a place; what it does not understand it leaves out. */
export function parse(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?', 2);
  const words = path.split('/').map(decode);
  const route = { ...home };
  if (words[0] !== 'repo' || !words[1]) return route;
  route.repo = words[1];
  if (words[2] !== 'run' || !words[3]) return route;
  route.run = words[3];
  if (words[4] === 'node') route.node = words[5] || null;
  else if (words[4] === 'iter') {
    route.iter = /^\d{1,9}(\.w\d{1,9})?$/.test(words[5] ?? '') ? (words[5] ?? null) : null;
    route.tab = route.iter === null ? null : among(tabs, words[6]);
    route.other = /^vs(\d{1,9}(?:\.w\d{1,9})?)$/.exec(query)?.[1] ?? null;
    const line = /^L(\d{1,9})$/.exec(query)?.[1];
    route.line = line === undefined ? null : Number(line);
  } else route.section = among(sections, words[4]) ?? 'tasks';
  return route;
}

/** Writes a place, for a link. */
export function format(route: Partial<Route>): string {
  if (!route.repo) return '#/';
  const words = ['repo', route.repo];
  if (route.run) {
    words.push('run', route.run);
    if (route.iter != null) words.push('iter', route.iter, ...(route.tab ? [route.tab] : []));
    else if (route.node) words.push('node', route.node);
    else if (route.section && route.section !== 'tasks') words.push(route.section);
  }
  const query =
    route.iter == null
      ? ''
      : route.line != null
        ? `?L${route.line}`
        : route.other != null
          ? `?vs${route.other}`
          : '';
  return `#/${words.map(encodeURIComponent).join('/')}${query}`;
}

/** Takes the token out of the fragment with which the page was opened; the rest is the place. */
export function takeToken(hash: string): { token: string | null; rest: string } {
  const match = /^#(.*?)(?:^|[#&?])?token=([A-Za-z0-9_-]+)(.*)$/.exec(hash);
  if (!match) return { token: null, rest: hash };
  const rest = `${match[1] ?? ''}${match[3] ?? ''}`.replace(/[#&?]+$/, '').replace(/^&/, '');
  return { token: match[2] ?? null, rest: rest === '' ? '' : `#${rest}` };
}
