// Splits a line of a log into pieces of one look each. Knows colours and weight; every other escape sequence is left out,
// and a character that is none is shown as a symbol.
import { safe } from './safe';

/** A stretch of text with one look; `look` is a list of class names. */
export interface Piece {
  text: string;
  look: string;
}

interface Pen {
  fg: string;
  bold: boolean;
  dim: boolean;
  italic: boolean;
  underline: boolean;
  inverse: boolean;
}

const plain = (): Pen => ({
  fg: '',
  bold: false,
  dim: false,
  italic: false,
  underline: false,
  inverse: false,
});

// CSI sequences, OSC strings (links, titles) with their end, and two-character escapes.
const escape =
  /\u001b\[([0-9;:<=>?]*)[ -/]*([@-~])|\u001b[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\)|\u001b[ -/]*[0-OQ-WYZ\\`-~]|\u009b([0-9;:]*)([@-~])/g;

/** Splits one line; a look does not go on in the next. */
export function pieces(line: string): Piece[] {
  if (!line.includes('\u001b') && !line.includes('\u009b'))
    return [{ text: safe(overwritten(line)), look: '' }];
  const pen = plain();
  const found: Piece[] = [];
  const push = (text: string) => {
    if (text === '') return;
    const look = classes(pen);
    const last = found.at(-1);
    if (last?.look === look) last.text += safe(text);
    else found.push({ text: safe(text), look });
  };
  const source = overwritten(line);
  let from = 0;
  for (const match of source.matchAll(escape)) {
    push(source.slice(from, match.index));
    from = match.index + match[0].length;
    if ((match[2] ?? match[4]) === 'm') apply(pen, match[1] ?? match[3] ?? '');
  }
  push(source.slice(from));
  return found.length === 0 ? [{ text: '', look: '' }] : found;
}

/** A line as it reads without its looks. */
export function bare(line: string): string {
  return safe(overwritten(line).replace(escape, ''));
}

/** What a progress bar leaves: the text after the last carriage return that has any behind it. */
function overwritten(line: string): string {
  const trimmed = line.endsWith('\r') ? line.slice(0, -1) : line;
  return trimmed.slice(trimmed.lastIndexOf('\r') + 1);
}

const basic = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'];

function apply(pen: Pen, parameters: string): void {
  const codes = parameters.split(/[;:]/).map(Number);
  for (let at = 0; at < codes.length; at += 1) {
    const code = codes[at] ?? 0;
    if (code === 0) Object.assign(pen, plain());
    else if (code === 1) pen.bold = true;
    else if (code === 2) pen.dim = true;
    else if (code === 3) pen.italic = true;
    else if (code === 4) pen.underline = true;
    else if (code === 7) pen.inverse = true;
    else if (code === 22) pen.bold = pen.dim = false;
    else if (code === 23) pen.italic = false;
    else if (code === 24) pen.underline = false;
    else if (code === 27) pen.inverse = false;
    else if (code === 39) pen.fg = '';
    else if (code >= 30 && code <= 37) pen.fg = basic[code - 30] ?? '';
    else if (code >= 90 && code <= 97) pen.fg = basic[code - 90] ?? '';
    else if (code === 38 || code === 48) {
      const indexed = codes[at + 1] === 5;
      if (code === 38)
        pen.fg = indexed ? nearest(codes[at + 2] ?? 0) : nearestOf(codes.slice(at + 2, at + 5));
      at += indexed ? 2 : 4;
    }
  }
}

/** One of the eight names for a colour of the 256. */
function nearest(index: number): string {
  if (index < 16) return basic[index % 8] ?? '';
  if (index >= 232) return index < 244 ? 'black' : 'white';
  const cube = index - 16;
  return nearestOf([Math.floor(cube / 36), Math.floor(cube / 6) % 6, cube % 6].map((level) => level * 51));
}

function nearestOf(rgb: number[]): string {
  const top = Math.max(...rgb);
  if (top < 64) return 'black';
  const bits = rgb.reduce((sum, level, at) => sum + (level > top * 0.6 ? 1 << at : 0), 0);
  return basic[bits] ?? '';
}

function classes(pen: Pen): string {
  const names = [pen.fg && `fg-${pen.fg}`];
  for (const name of ['bold', 'dim', 'italic', 'underline', 'inverse'] as const)
    if (pen[name]) names.push(name);
  return names.filter(Boolean).join(' ');
}
