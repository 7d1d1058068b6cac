import { expect, test } from 'vitest';
import { parse } from '../route';
import type { IterationView } from '../wire';
import { above } from './keys';

test('Escape leads from an iteration to its task, to the run, to all repositories', () => {
  const iterations = [{ iter: 7, node: 'a.b', wait: null }] as IterationView[];
  const path = ['#/repo/r/run/x/iter/7/guard?L9'];
  for (let next = above(parse(path[0]!), iterations); next !== null; next = above(parse(next), iterations))
    path.push(next);
  expect(path.slice(1)).toEqual(['#/repo/r/run/x/node/a.b', '#/repo/r/run/x', '#/']);
  expect(above(parse('#/repo/r/run/x/changes'), [])).toBe('#/repo/r/run/x');
  expect(above(parse('#/repo/r/run/x/iter/9'), iterations)).toBe('#/repo/r/run/x');
});
