// What a tab says while it is not looked at: how many repositories need somebody.

/** The title of the page. */
export function titled(repo: string | null, waiting: number): string {
  const name = repo === null ? 'runner' : `${repo} · runner`;
  return waiting > 0 ? `(${waiting}) ${name}` : name;
}

/** The icon of the page, with a dot where somebody is needed. */
export function badged(waiting: number): string {
  if (waiting === 0) return '/favicon.svg';
  const dot = '<circle cx="25" cy="7" r="7" fill="#e0962a" stroke="#fff" stroke-width="2"/>';
  const mark =
    '<rect width="32" height="32" rx="8" fill="#3b5bdb"/><path d="M10 8v16M10 12h8M10 20h8" stroke="#fff" stroke-width="2.4" fill="none" stroke-linecap="round"/><circle cx="21.5" cy="20" r="3" fill="none" stroke="#fff" stroke-width="2.2"/>';
  const icon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">${mark}${dot}</svg>`;
  return `data:image/svg+xml,${encodeURIComponent(icon)}`;
}
