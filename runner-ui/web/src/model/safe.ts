// Makes text that agents wrote harmless to look at: what cannot be seen, or changes the order of what can, becomes a symbol.
// The same characters as in the client's `text/safe.rs`. Markup needs no care: text only ever goes into text nodes.

const hidden =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e0fff}]/gu;

function symbol(char: string): string {
  const code = char.codePointAt(0) ?? 0;
  if (code < 0x20) return String.fromCodePoint(0x2400 + code);
  return code === 0x7f ? '\u2421' : '\ufffd';
}

/** Several lines: line breaks and tabs stay. */
export function safeLines(text: string): string {
  return text.replaceAll('\r\n', '\n').replace(hidden, symbol);
}

/** One line: line breaks and tabs become spaces. */
export function safe(text: string | null | undefined): string {
  return safeLines(text ?? '').replace(/[\n\t]/g, ' ');
}
