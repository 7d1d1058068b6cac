// Finds a place by its words: repositories, runs, tasks, iterations and sections of what is open, best first.
import { format, sections } from '../route';
import type { IterationView, Node, RunSummary, StatusView } from '../wire';
import { headlineOf, lookOf, nameOf } from './overview';
import { keyOf } from './timeline';
import { ofSummary, ofVerdict } from './words';

/** What can be found. */
export interface Ground {
  repos: readonly StatusView[];
  /** The run that is open. */
  open: { repo: string; run: string; nodes: Iterable<Node>; iterations: readonly IterationView[] } | null;
  runs: readonly RunSummary[];
}

/** A place that fits. */
export interface Hit {
  kind: 'repository' | 'run' | 'task' | 'iteration' | 'section' | 'line';
  title: string;
  about: string;
  place: string;
}

/** Places that are offered. */
const MOST = 60;

/** Finds what has all the words; where nothing is asked for, repositories and sections are offered. */
export function find(wanted: string, ground: Ground): Hit[] {
  const words = wanted.toLowerCase().split(/\s+/).filter(Boolean);
  const found: { hit: Hit; rank: number }[] = [];
  for (const hit of all(ground)) {
    if (words.length === 0 && hit.kind !== 'repository' && hit.kind !== 'section') continue;
    const rank = fits(hit, words);
    if (rank !== null) found.push({ hit, rank });
  }
  // Equal ones stay in their order: the tree's, and the newest iterations first.
  return found
    .sort((a, b) => a.rank - b.rank)
    .slice(0, MOST)
    .map(({ hit }) => hit);
}

/** How well it fits, the smaller the better: null where a word is missing. */
function fits(hit: Hit, words: readonly string[]): number | null {
  const [title, rest] = [hit.title.toLowerCase(), hit.about.toLowerCase()];
  let rank = 0;
  for (const word of words) {
    const at = title.indexOf(word);
    if (at === 0) continue;
    if (at > 0) rank += /\w/.test(title[at - 1] ?? '') ? 2 : 1;
    else if (rest.includes(word)) rank += 4;
    else return null;
  }
  return rank;
}

function* all({ repos, open, runs }: Ground): Generator<Hit> {
  for (const one of repos) {
    const { id } = one.repo;
    const about = [headlineOf(one), one.run?.summary.id, lookOf(one)?.word];
    yield { kind: 'repository', title: nameOf(one), about: joined(about), place: format({ repo: id }) };
  }
  if (!open) return;
  const { repo, run } = open;
  for (const section of sections)
    yield {
      kind: 'section',
      title: named(section),
      about: 'of this run',
      place: format({ repo, run, section }),
    };
  for (const one of runs) {
    const about = joined([one.id, ofSummary(one).word]);
    yield { kind: 'run', title: one.goal ?? one.id, about, place: format({ repo, run: one.id }) };
  }
  for (const node of open.nodes)
    yield {
      kind: 'task',
      title: node.title,
      about: joined([node.id, node.goal]),
      place: format({ repo, run, node: node.id }),
    };
  for (const view of [...open.iterations].reverse()) {
    const about = joined([ofVerdict(view.verdict).word, view.title ?? view.node, view.summary]);
    const key = keyOf(view);
    yield { kind: 'iteration', title: `Iteration ${key}`, about, place: format({ repo, run, iter: key }) };
  }
}

const named = (section: string) => section.charAt(0).toUpperCase() + section.slice(1);
const joined = (parts: readonly (string | null | undefined)[]) => parts.filter(Boolean).join(' · ');
