// The focus is never lost: where what had it goes away, what was around it takes it, else the content of the page.

/** What had the focus last, and what it was in, the innermost first. */
let path: HTMLElement[] = [];

function around(element: Element): HTMLElement[] {
  const found: HTMLElement[] = [];
  for (let at: Element | null = element; at; at = at.parentElement)
    if (at instanceof HTMLElement && (at.tabIndex >= 0 || at.hasAttribute('tabindex'))) found.push(at);
  return found;
}

const isThere = (element: HTMLElement) => element.isConnected && element.checkVisibility();

function restore(): void {
  const { activeElement } = document;
  const isLost = !activeElement || activeElement === document.body || !activeElement.checkVisibility();
  if (!isLost || path.length === 0) return;
  const next = path.find(isThere) ?? document.getElementById('main');
  next?.focus({ preventScroll: true });
}

/** Keeps it until the returned function is called. */
export function keepFocus(): () => void {
  const note = (event: FocusEvent) => {
    if (event.target instanceof Element) path = around(event.target);
  };
  // Whoever clicks beside everything wants no focus.
  const clear = (event: PointerEvent) => {
    if (event.target instanceof Element && around(event.target).length === 0) path = [];
  };
  let isDue = false;
  const observer = new MutationObserver(() => {
    if (isDue) return;
    isDue = true;
    requestAnimationFrame(() => ((isDue = false), restore()));
  });
  document.addEventListener('focusin', note);
  document.addEventListener('pointerdown', clear);
  observer.observe(document.body, { childList: true, subtree: true });
  return () => {
    document.removeEventListener('focusin', note);
    document.removeEventListener('pointerdown', clear);
    observer.disconnect();
  };
}
