// The first question of a repository that waits for an answer.
import type { Api } from '../api';
import { gathered } from '../model/questions';

/** Reads its text; tells nothing after the returned function was called. */
export function readAsked(api: Api, repo: string, tell: (text: string) => void): () => void {
  let isWanted = true;
  void api.questions(repo).then(
    (all) => {
      const first = gathered(all)[0];
      if (isWanted && first?.answer === null) tell(first.text.trim());
    },
    () => undefined,
  );
  return () => void (isWanted = false);
}
