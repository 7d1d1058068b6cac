import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { aimed, toldAbout, toldAt, typed } from './shell';

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

test('a command about another run names it, and one that is about none stays', () => {
  const to = (...argv: string[]) => aimed({ argv }, 'calc-1').argv.join(' ');
  expect(to('runnerctl', 'retry', 'a', '--resume')).toBe('runnerctl retry --run calc-1 a --resume');
  expect(to('runnerctl', 'guard', 'accept')).toBe('runnerctl guard accept --run calc-1');
  for (const words of [
    ['runnerctl', 'land', '--run', 'other'],
    ['runnerctl', 'doctor'],
    ['git', 'log'],
  ])
    expect(to(...words)).toBe(words.join(' '));
  expect(aimed({ argv: ['runnerctl', 'resume'] }, null).argv).toEqual(['runnerctl', 'resume']);
  expect(toldAbout('runnerctl retry a; or runnerctl doctor, then: runnerctl resume', 'x')).toBe(
    'runnerctl retry --run x a; or runnerctl doctor, then: runnerctl resume --run x',
  );
});

test('what is about a daemon on another machine names it, and is done there', () => {
  const host = 'ssh://me@gpu:2222';
  const git = { argv: ['git', 'switch', 'main'] };
  expect(typed({ argv: ['runnerctl', 'resume'] }, '/a', host)).toBe(
    'runnerctl --host ssh://me@gpu:2222 -C /a resume',
  );
  expect(typed(git, "/it's", 'ssh://gpu')).toBe(
    `ssh -t gpu 'git -C '\\''/it'\\''\\'\\'''\\''s'\\'' switch main'`,
  );
  expect(typed(git, null, host)).toBe(`ssh -t -l me -p 2222 gpu 'git switch main'`);
  expect(typed({ argv: ['ssh', '-t', 'gpu', 'runnerctl doctor'] }, '/a', host)).toBe(
    `ssh -t gpu 'runnerctl doctor'`,
  );
  const text = "git switch main, or runnerctl resume; by hand: ssh -t gpu 'runnerctl doctor'";
  expect(toldAt(text, [git, { argv: ['runnerctl', 'resume'] }], 'ssh://gpu')).toBe(
    `ssh -t gpu 'git switch main', or runnerctl --host ssh://gpu resume; by hand: ssh -t gpu 'runnerctl doctor'`,
  );
  expect(toldAt(text, [git], null)).toBe(text);
});
