// The steps of an agent's work, read on while its session is under way; the newest are kept.
import { Failure, type Api } from '../api';
import type { ActivityReply } from '../wire';

export type Step = ActivityReply['steps'][number];

/** Most steps kept. */
const MOST = 5000;

export class Activity {
  steps = $state.raw<Step[]>([]);
  /** Steps that were read and are not kept. */
  dropped = $state(0);
  complete = $state(false);
  ready = $state(false);
  error = $state.raw<Failure | null>(null);
  #next = 0;
  #busy = false;
  #again = false;
  #ended = false;

  constructor(
    private readonly api: Api,
    private readonly repo: string,
    private readonly run: string,
    private readonly iter: string,
  ) {}

  poke(): void {
    if (this.#busy) this.#again = true;
    else if (!this.complete) void this.#run();
  }

  end(): void {
    this.#ended = true;
  }

  async #run(): Promise<void> {
    this.#busy = true;
    try {
      do {
        this.#again = false;
        await this.#rest();
      } while (this.#again && !this.complete && !this.#ended);
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      this.error = error;
    } finally {
      this.ready = true;
      this.#busy = false;
    }
  }

  async #rest(): Promise<void> {
    while (!this.#ended) {
      const reply = await this.api.activity(this.repo, this.run, this.iter, this.#next);
      const moved = reply.next_offset > this.#next;
      this.#next = reply.next_offset;
      this.complete = reply.complete;
      this.error = null;
      this.ready = true;
      if (reply.steps.length > 0) this.#keep(reply.steps);
      if (reply.complete || !moved) return;
    }
  }

  #keep(fresh: Step[]): void {
    const all = [...this.steps, ...fresh];
    const over = Math.max(all.length - MOST, 0);
    this.dropped += over;
    this.steps = over > 0 ? all.slice(over) : all;
  }
}
