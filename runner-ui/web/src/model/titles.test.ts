import { expect, test } from 'vitest';
import { titled } from './titles';

const titles = new Map([
  ['parser.lex', 'Tokens'],
  ['docs', 'A page of help'],
  ['root-2', 'Second'],
]);

test('a task is called by its title where its id stands', () => {
  expect(titled('task parser.lex has used its 3 attempts', titles)).toBe('“Tokens” has used its 3 attempts');
  expect(titled('task docs waits; the docs are old', titles)).toBe(
    '“A page of help” waits; the docs are old',
  );
  expect(titled('root-2 is done, last on parser.lex.', titles)).toBe('“Second” is done, last on “Tokens”.');
});

test('what only looks like an id stays', () => {
  for (const text of [
    'task other has used its 3 attempts',
    'docs/parser.lex is missing',
    'the branch runner/root-2',
    'parser.lex.old',
    '`parser.lex` is a file',
  ])
    expect(titled(text, titles)).toBe(text);
});
