// The reader's choice to see both sides of a difference beside each other; kept in this browser.
const KEY = 'runner.split';
const chosen = $state({ split: read() });

function read(): boolean {
  try {
    return localStorage.getItem(KEY) === 'yes';
  } catch {
    return false;
  }
}

export const isSplit = (): boolean => chosen.split;

export function setSplit(wanted: boolean): void {
  chosen.split = wanted;
  try {
    localStorage.setItem(KEY, wanted ? 'yes' : 'no');
  } catch {
    // A browser that keeps nothing has the choice for as long as the page is open.
  }
}
