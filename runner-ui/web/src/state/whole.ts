// A text of a record as a whole, for what needs all of it at once; bounded, and none where there is no such text.
import { Failure, type Api } from '../api';

/** Bytes that are read. */
const MOST = 2 * 1024 * 1024;

export async function wholeText(api: Api, address: string, signal: AbortSignal): Promise<string[]> {
  const part = await api.part(address, 0, MOST, signal).catch((error: unknown) => {
    if (error instanceof Failure && error.code === 'not_found') return null;
    throw error;
  });
  if (part === null || part.bytes.length === 0) return [];
  const lines = new TextDecoder().decode(part.bytes).split('\n');
  if (lines.at(-1) === '') lines.pop();
  return lines;
}
