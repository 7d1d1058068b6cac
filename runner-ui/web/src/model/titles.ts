// Calls tasks by their titles in sentences that name them by their ids.
import type { RunView } from '../wire';
import type { Forest } from './tree';

/** Titles by id. */
export type Titles = ReadonlyMap<string, string>;

/** What is known of a run's titles without its tree. */
export function titlesOf(run: RunView | null | undefined, found: Forest | null = null): Titles {
  const titles = new Map<string, string>();
  for (const view of run?.recent ?? []) if (view.title) titles.set(view.node, view.title);
  if (run?.node) titles.set(run.node.id, run.node.title);
  for (const node of found?.nodes.values() ?? []) titles.set(node.id, node.title);
  return titles;
}

/** An id, with the word before it that says that it is one. */
const named = /(\btask )?(?<![\w.\-/`])([A-Za-z0-9][\w-]*(?:\.[\w-]+)*)(?![\w\-/`])/g;

/** Puts titles in the place of ids: of all that follow "task", and of those that no other word looks like. */
export function titled(sentence: string, titles: Titles): string {
  return sentence.replace(named, (all, said: string | undefined, id: string) => {
    const title = titles.get(id);
    const isCertain = said !== undefined || /[.\-_]|[A-Za-z]\d/.test(id);
    return title !== undefined && isCertain ? `“${title.trim()}”` : all;
  });
}
