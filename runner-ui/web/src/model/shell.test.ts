import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { typed } from './shell';

const words = ["it's", '$(id)', '`id`', 'a b', '', 'x;y', '*', '"', '\n', '-n', '~', '\\', '#x', 'ü'];

test('a shell makes of a command the words that it was made of', () => {
  const line = typed({ argv: ['printf', '%s\\0', ...words] }, '/nowhere');
  const { stdout } = spawnSync('/bin/sh', ['-c', line], { encoding: 'utf8' });
  expect(stdout.split('\0').slice(0, -1)).toEqual(words);
});

test('programs that work in a place are told it, and only where it can be written', () => {
  expect(typed({ argv: ['runnerctl', 'resume'] }, "/it's")).toBe(`runnerctl -C '/it'\\''s' resume`);
  expect(typed({ argv: ['git', 'status'] }, '/a')).toBe('git -C /a status');
  expect(typed({ argv: ['rm', 'x'] }, '/a')).toBe('rm x');
  expect(typed({ argv: ['runnerctl', 'resume'] }, { hex: 'ff' })).toBe('runnerctl resume');
});
