// Reads things anew when they are stale: one request at a time per thing, one more where it became stale meanwhile,
// and not more often than is good for anybody.

/** Milliseconds between two readings of the same thing. */
const APART = 250;

interface Thing {
  read: () => Promise<void>;
  busy: boolean;
  again: boolean;
  last: number;
}

export class Refresher<Name extends string> {
  #things = new Map<Name, Thing>();
  #ended = false;

  constructor(private readonly failed: (error: unknown) => void) {}

  /** Says how a thing is read; before, it cannot be stale. */
  knows(name: Name, read: () => Promise<void>): void {
    if (!this.#things.has(name)) this.#things.set(name, { read, busy: false, again: false, last: -APART });
  }

  /** Has things read anew; those that nobody reads are passed over. */
  need(...names: Name[]): void {
    for (const name of names) {
      const thing = this.#things.get(name);
      if (!thing) continue;
      if (thing.busy) thing.again = true;
      else void this.#run(thing);
    }
  }

  end(): void {
    this.#ended = true;
  }

  async #run(thing: Thing): Promise<void> {
    thing.busy = true;
    do {
      const early = thing.last + APART - performance.now();
      if (early > 0) await new Promise((resolve) => setTimeout(resolve, early));
      if (this.#ended) return;
      thing.again = false;
      thing.last = performance.now();
      await thing.read().catch((error: unknown) => this.failed(error));
    } while (thing.again && !this.#ended);
    thing.busy = false;
  }
}
