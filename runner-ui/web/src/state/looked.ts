// When this reader has looked at the overview last, kept by the browser; nothing else is.
const KEY = 'runner-looked';

/** The time; null where they have not, or where the browser keeps nothing. */
export function lastLook(): number | null {
  try {
    const kept = Number(localStorage.getItem(KEY));
    return Number.isFinite(kept) && kept > 0 ? kept : null;
  } catch {
    return null;
  }
}

/** Says that they look now. */
export function lookedAt(time: number): void {
  try {
    localStorage.setItem(KEY, String(time));
  } catch {
    // A browser that keeps nothing shows nothing as new.
  }
}
