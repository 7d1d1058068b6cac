// The other machines that have a page: what there is on each is asked now and then, while somebody looks.
import { Api } from '../api';
import { baseAt } from '../base';
import type { StatusView } from '../wire';

/** Milliseconds between two looks at the same machine. */
const EVERY = 10_000;

/** What is known of a machine. */
export interface Machine {
  host: string;
  address: string;
  /** Null while nothing has been told yet. */
  repos: StatusView[] | null;
  /** Why it does not answer. */
  failure: string | null;
}

/** Looks at the machines until the returned function is called; none is waited for. */
export function look(hosts: readonly string[], here: string, tell: (machine: Machine) => void): () => void {
  let isOver = false;
  const timers = new Set<ReturnType<typeof setTimeout>>();
  const ask = async (host: string, base: string) => {
    const known = { host, address: base || '/' };
    await new Api(undefined, true, base).repos().then(
      (repos) => !isOver && tell({ ...known, repos, failure: null }),
      (error: unknown) =>
        !isOver &&
        tell({ ...known, repos: null, failure: error instanceof Error ? error.message : String(error) }),
    );
  };
  const follow = async (host: string, base: string) => {
    if (!document.hidden) await ask(host, base);
    if (isOver) return;
    const timer = setTimeout(() => {
      timers.delete(timer);
      void follow(host, base);
    }, EVERY);
    timers.add(timer);
  };
  hosts.forEach((host, place) => {
    tell({ host, address: baseAt(place) || '/', repos: null, failure: null });
    if (host !== here) void follow(host, baseAt(place));
  });
  return () => {
    isOver = true;
    timers.forEach(clearTimeout);
  };
}
