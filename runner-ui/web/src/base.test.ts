import { expect, test } from 'vitest';
import { baseAt, baseOf } from './base';

const of = (pathname: string, protocol = 'http:') => baseOf({ protocol, pathname });

test('an address names a machine, and a file on a disk none', () => {
  expect([of('/'), of('/m/1'), of('/m/12/'), of('/m/x/'), of('/m/1x')]).toEqual([
    '',
    '/m/1',
    '/m/12',
    '',
    '',
  ]);
  expect([of('/m/1/run.html', 'file:'), baseOf(undefined)]).toEqual(['', '']);
  expect([baseAt(0), of(baseAt(3))]).toEqual(['', '/m/3']);
});
