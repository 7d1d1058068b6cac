import { expect, test } from 'vitest';
import { format, home, parse, takeToken } from './route';

test('a link leads back to its place', () => {
  const places = [
    {},
    { repo: 'r1' },
    { repo: 'r1', run: 'x' },
    { repo: 'r1', run: 'x', section: 'timeline' as const },
    { repo: 'r1', run: 'x', node: 'a.b' },
    { repo: 'r1', run: 'x', iter: '7.w2', tab: 'guard' as const, line: 120 },
    { repo: 'r1', run: 'x', iter: '7', tab: 'compare' as const, other: '6.w1' },
  ];
  for (const place of places) expect(parse(format(place))).toEqual({ ...home, ...place });
  expect(format(places[5]!)).toBe('#/repo/r1/run/x/iter/7.w2/guard?L120');
});

test('what is not understood is left out', () => {
  expect(parse('#/repo/r/run/x/iter/../log')).toMatchObject({ iter: null, tab: null });
  expect(parse('#/repo/r/run/x/iter/7/nothing?Lx')).toMatchObject({ iter: '7', tab: null, line: null });
  expect(parse('#/repo/%E0%A4%A')).toMatchObject({ repo: '%E0%A4%A' });
  expect(parse('#javascript:alert(1)')).toEqual(home);
});

test('the token is taken out and the place stays', () => {
  expect(takeToken('#token=abc-_1')).toEqual({ token: 'abc-_1', rest: '' });
  expect(takeToken('#/repo/r?token=abc')).toEqual({ token: 'abc', rest: '#/repo/r' });
  expect(takeToken('#token=abc&/repo/r')).toEqual({ token: 'abc', rest: '#/repo/r' });
  expect(takeToken('#/repo/r')).toEqual({ token: null, rest: '#/repo/r' });
});
