// The machine that this page is about, where it is another one than the reader's: commands name it.
let host = $state<string | null>(null);

export const machine = (): string | null => host;

export function setMachine(named: string | null): void {
  host = named;
}
