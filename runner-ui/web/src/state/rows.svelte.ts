// Which rows of a long list are drawn, by `@tanstack/virtual-core`: those in view and some around, of one height or of many.
import { elementScroll, observeElementOffset, observeElementRect, Virtualizer } from '@tanstack/virtual-core';
import { untrack } from 'svelte';

/** What is told of a list. */
export interface List {
  /** What scrolls; null until it is there. */
  box: HTMLElement | null;
  count: number;
  /** Height of a row in pixels; of one that is measured, what is taken for it until then. */
  sizeOf: (index: number) => number;
  /** What a row is, wherever it stands. */
  keyOf?: ((index: number) => number | string) | undefined;
  /** Room above the first row. */
  above?: number;
}

/** A row that is drawn. */
export interface Drawn {
  index: number;
  key: number | string | bigint;
}

/** Rows drawn beyond what is seen, so that scrolling shows no gap. */
const AROUND = 12;

export class Rows {
  #version = $state(0);
  #list: () => List;
  #rows: Virtualizer<HTMLElement, HTMLElement>;

  /** For the component that is being made: `list` is read anew whenever something of it changes. */
  constructor(list: () => List) {
    this.#list = list;
    this.#rows = new Virtualizer(untrack(() => this.#options()));
    $effect(() => this.#rows._didMount());
    $effect(() => {
      void this.drawn;
      untrack(() => this.#rows._willUpdate());
    });
  }

  /** The rows to draw, and the empty room above and below them in pixels. */
  drawn: { rows: Drawn[]; above: number; below: number } = $derived.by(() => {
    void this.#version;
    this.#rows.setOptions(this.#options());
    const rows = this.#rows.getVirtualItems();
    const first = this.#list().above ?? 0;
    const end = rows.at(-1)?.end ?? first;
    return {
      rows,
      above: (rows[0]?.start ?? first) - first,
      below: Math.max(this.#rows.getTotalSize() - end, 0),
    };
  });

  /** Whether a row can be read where it is. */
  isSeen(index: number): boolean {
    const { box } = this.#list();
    const row = this.#rows.getVirtualItems().find((one) => one.index === index);
    if (!box || !row) return false;
    return row.start >= box.scrollTop + row.size && row.end + row.size <= box.scrollTop + box.clientHeight;
  }

  /** Scrolls to a row, also where the heights before it turn out to be others. */
  show(index: number, align: 'start' | 'center' | 'end'): void {
    this.#rows.scrollToIndex(index, { align });
  }

  /** The row in the middle of what is seen. */
  middle(): number {
    const half = (this.#list().box?.clientHeight ?? 0) / 2;
    return this.#rows.getVirtualItemForOffset((this.#rows.scrollOffset ?? 0) + half)?.index ?? 0;
  }

  /** Forgets the heights that were measured. */
  forget(): void {
    this.#rows.measure();
  }

  /** Has the height of a row measured while it is drawn; it says which it is in `data-index`. */
  measure = (element: HTMLElement): void => untrack(() => this.#rows.measureElement(element));

  #options() {
    const { box, count, sizeOf, keyOf, above } = this.#list();
    return {
      count,
      getScrollElement: () => box,
      estimateSize: sizeOf,
      overscan: AROUND,
      initialRect: { width: 0, height: 800 },
      observeElementRect,
      observeElementOffset,
      scrollToFn: elementScroll,
      onChange: () => untrack(() => (this.#version += 1)),
      ...(keyOf ? { getItemKey: keyOf } : {}),
      ...(above ? { paddingStart: above } : {}),
    };
  }
}
