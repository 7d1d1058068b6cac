// The first question of a repository that waits for an answer.
import type { Api } from '../api';
import { gathered, type Question } from '../model/questions';

/** Reads it; tells nothing after the returned function was called. */
export function readAsked(api: Api, repo: string, tell: (question: Question) => void): () => void {
  let isWanted = true;
  void api.questions(repo).then(
    (all) => {
      const first = gathered(all)[0];
      if (isWanted && first?.answer === null) tell(first);
    },
    () => undefined,
  );
  return () => void (isWanted = false);
}
