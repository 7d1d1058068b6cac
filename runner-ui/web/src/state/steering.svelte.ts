// The right to steer: a token that an address of a server for it gives. It is held in the memory of tabs alone; a tab asks the
// others of its origin for it. A page that is loaded again with no other beside it may only look.
import { Failure } from '../api';
import type { Api } from '../api';
import type { Steer, Steered } from '../wire';

type Line = Pick<BroadcastChannel, 'postMessage' | 'onmessage'>;
type Said = { ask: true } | { token: string };

/** A line to the other tabs of this origin; browsers keep nothing of what is said on it. */
const between = (): Line => new BroadcastChannel('runner-steering');
/** The line of a page that has no others, and nobody to steer. */
export const nobody: Line = { postMessage: () => undefined, onmessage: null };

export class Steering {
  #token = $state.raw<string | null>(null);
  #line: Line;

  constructor(line: Line = between()) {
    this.#line = line;
    this.#line.onmessage = ({ data }: MessageEvent<Said>) => this.#heard(data);
    this.#say({ ask: true });
  }

  /** Whether this page may steer. */
  get may(): boolean {
    return this.#token !== null;
  }

  /** Takes what an address has given. */
  take(token: string): void {
    this.#token = token;
    this.#say({ token });
  }

  /** Has something done. */
  async order(api: Api, at: { repo: string; run: string }, order: Steer): Promise<Steered> {
    const token = this.#token;
    if (token === null) throw new Failure('may_not_steer', 'this page may only look');
    return api.steer(at, order, token).catch((error: unknown) => {
      // Another server listens there now.
      if (error instanceof Failure && error.code === 'may_not_steer' && this.#token === token)
        this.#token = null;
      throw error;
    });
  }

  #heard(said: Said): void {
    if ('token' in said) this.#token = said.token;
    else if (this.#token !== null) this.#say({ token: this.#token });
  }

  #say(said: Said): void {
    this.#line.postMessage(said);
  }
}
