// Where the pages of several machines are: that of the first at `/`, that of the one after `n` others at `/m/n`.

/** The part of an address that names the machine; empty for the first one, and where no server is asked. */
export function baseOf(place: Pick<Location, 'protocol' | 'pathname'> | undefined): string {
  if (!place?.protocol.startsWith('http')) return '';
  return /^\/m\/\d+(?=\/|$)/.exec(place.pathname)?.[0] ?? '';
}

/** The same of the machine at a place in the list of all. */
export const baseAt = (place: number): string => (place === 0 ? '' : `/m/${place}`);

/** That of this page. */
export const BASE = baseOf(globalThis.location);
