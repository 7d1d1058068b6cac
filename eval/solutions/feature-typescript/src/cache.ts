interface Entry<V> {
  readonly value: V;
  readonly since: number;
}

/** A cache that forgets what is too old, and what was not used for the longest time when its places are taken. */
export class Cache<K, V> {
  readonly #places: number;
  readonly #maxAgeMs: number;
  readonly #now: () => number;
  readonly #entries = new Map<K, Entry<V>>();

  constructor(options: { places: number; maxAgeMs?: number; now?: () => number }) {
    this.#places = options.places;
    this.#maxAgeMs = options.maxAgeMs ?? Infinity;
    this.#now = options.now ?? Date.now;
  }

  get size(): number {
    this.#forget();
    return this.#entries.size;
  }

  has(key: K): boolean {
    this.#forget();
    return this.#entries.has(key);
  }

  get(key: K): V | undefined {
    this.#forget();
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    return entry.value;
  }

  set(key: K, value: V): void {
    this.#forget();
    this.#entries.delete(key);
    this.#entries.set(key, { value, since: this.#now() });
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= this.#places) break;
      this.#entries.delete(oldest);
    }
  }

  #forget(): void {
    const now = this.#now();
    for (const [key, entry] of this.#entries) {
      if (now - entry.since >= this.#maxAgeMs) this.#entries.delete(key);
    }
  }
}
