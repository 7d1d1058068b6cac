// A text of a record that is read in pieces and grows while its iteration is under way.
import { Failure, type Api } from '../api';
import { Lines } from '../model/log';

/** Bytes asked for at a time. */
const PIECE = 1024 * 1024;

export class Text {
  readonly lines = new Lines();
  /** Grows with each change of the lines. */
  version = $state(0);
  size = $state(0);
  read = $state(0);
  complete = $state(false);
  missing = $state(false);
  error = $state.raw<Failure | null>(null);
  #busy = false;
  #again = false;
  #stop = new AbortController();

  constructor(
    private readonly api: Api,
    readonly address: string,
  ) {}

  /** Where it is as the server has it; null where there is no server. */
  get raw(): string | null {
    return this.api.opens ? this.address : null;
  }

  /** Whether it has been looked for. */
  get ready(): boolean {
    return this.complete || this.missing || this.version > 0 || this.error !== null;
  }

  /** Reads on from where it ended. */
  poke(): void {
    if (this.#busy) this.#again = true;
    else if (!this.complete) void this.#run();
  }

  end(): void {
    this.#stop.abort();
  }

  async #run(): Promise<void> {
    this.#busy = true;
    try {
      do {
        this.#again = false;
        await this.#rest();
      } while (this.#again && !this.complete);
    } catch (error) {
      if (error instanceof Failure) this.#failed(error);
      else if (!this.#stop.signal.aborted) throw error;
    } finally {
      this.#busy = false;
    }
  }

  async #rest(): Promise<void> {
    for (;;) {
      const part = await this.api.part(this.address, this.read, this.read + PIECE, this.#stop.signal);
      this.read += part.bytes.length;
      this.size = Math.max(part.size, this.read);
      const ended = part.complete && this.read >= this.size;
      this.lines.take(part.bytes, ended);
      this.complete = ended;
      this.missing = false;
      this.error = null;
      this.version += 1;
      if (this.read >= this.size || part.bytes.length === 0) return;
    }
  }

  #failed(error: Failure): void {
    if (error.code === 'not_found') this.missing = true;
    else this.error = error;
  }
}
