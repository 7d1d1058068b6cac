// Where Escape leads: from what is open to what it is part of.
import { format, type Route } from '../route';
import type { IterationView } from '../wire';
import { keyOf } from './timeline';

/** The place above; null at the top. */
export function above(route: Route, iterations: readonly IterationView[]): string | null {
  const { repo, run } = route;
  if (repo === null) return null;
  if (route.iter !== null) {
    const node = iterations.find((view) => keyOf(view) === route.iter)?.node ?? null;
    return format({ repo, run, node });
  }
  const isInner = route.node !== null || route.section !== 'tasks';
  return isInner ? format({ repo, run }) : format({});
}
