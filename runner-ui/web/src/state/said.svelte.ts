// What has just been done, for a moment, above everything and in nobody's way.
const FOR_MS = 2400;
const said = $state<{ text: string | null }>({ text: null });
let timer: ReturnType<typeof setTimeout> | undefined;

export const saying = (): string | null => said.text;

export function say(text: string): void {
  clearTimeout(timer);
  said.text = text;
  timer = setTimeout(() => (said.text = null), FOR_MS);
}
