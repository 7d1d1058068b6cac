import { expect, test } from 'vitest';
import type { IterationView, Node, StatusView } from '../wire';
import { find, type Ground } from './find';

const node = (id: string, title: string): Node => ({ id, title, goal: `What ${title} does` }) as Node;
const ended = (iter: number, summary: string): IterationView =>
  ({ run: 'r', iter, node: 'a', verdict: 'RedGuard', summary, wait: null }) as unknown as IterationView;
const repo = (id: string, path: string, goal: string): StatusView =>
  ({
    repo: { id, path },
    run: { summary: { id: `${id}-run`, state: 'stuck', goal } },
  }) as unknown as StatusView;
const ground: Ground = {
  repos: [repo('r1', '/src/calc', 'A calculator'), repo('r2', '/src/site', 'A fast site')],
  open: {
    repo: 'r1',
    run: 'r1-run',
    nodes: [node('a', 'Tokens of the parser'), node('b', 'The parser'), node('c', 'Print it')],
    iterations: [ended(1, 'Wrote the lexer'), ended(2, 'Mended the lexer')],
  },
  runs: [],
};
const titles = (wanted: string) => find(wanted, ground).map((hit) => hit.title);

test('without words, repositories and sections are offered', () => {
  expect(titles('')).toEqual([
    'calc',
    'site',
    'Tasks',
    'Changes',
    'Timeline',
    'Plots',
    'Memory',
    'Questions',
    'Settings',
  ]);
});

test('every word has to be there, and what begins with them comes first', () => {
  expect(titles('tokens parser')).toEqual(['Tokens of the parser']);
  expect(titles('print')[0]).toBe('Print it');
  expect(titles('fast')).toEqual(['site']);
  expect(titles('nowhere')).toEqual([]);
});

test('iterations are found by what they did, the newest first', () => {
  expect(find('lexer', ground).map((hit) => hit.place)).toEqual([
    '#/repo/r1/run/r1-run/iter/2',
    '#/repo/r1/run/r1-run/iter/1',
  ]);
});
