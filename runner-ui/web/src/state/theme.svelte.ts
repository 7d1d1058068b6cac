// The reader's choice of light, dark or what the system says; kept in this browser.

export const themes = ['auto', 'light', 'dark'] as const;
export type Theme = (typeof themes)[number];

const KEY = 'runner.theme';
const chosen = $state<{ theme: Theme }>({ theme: 'auto' });

export const theme = (): Theme => chosen.theme;

export function setTheme(wanted: Theme): void {
  chosen.theme = wanted;
  if (wanted === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = wanted;
  try {
    localStorage.setItem(KEY, wanted);
  } catch {
    // A browser that keeps nothing has the choice for as long as the page is open.
  }
}

export function restoreTheme(): void {
  try {
    setTheme(themes.find((known) => known === localStorage.getItem(KEY)) ?? 'auto');
  } catch {
    setTheme('auto');
  }
}
