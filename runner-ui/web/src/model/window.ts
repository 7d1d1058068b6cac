// Which part of a long list is drawn: rows of one height, those in view and some around.

/** The rows from `first` up to and without `end`, and the empty room above and below them in pixels. */
export interface Window {
  first: number;
  end: number;
  above: number;
  below: number;
}

/** Rows drawn beyond what is seen, so that scrolling shows no gap. */
const AROUND = 12;

export function windowOf(count: number, rowHeight: number, scrollTop: number, height: number): Window {
  const seen = Math.ceil(height / rowHeight);
  const at = Math.min(Math.floor(scrollTop / rowHeight), Math.max(count - seen, 0));
  const first = Math.max(at - AROUND, 0);
  const end = Math.min(at + seen + AROUND, count);
  return { first, end, above: first * rowHeight, below: (count - end) * rowHeight };
}
