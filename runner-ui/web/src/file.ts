// A run that is in the page itself, as `runnerctl export html` has written it: its replies in the place of a server's.
import type { RunFile, StatusView } from './wire';

/** Finds it; null where the page comes from a server. */
export function runFile(within: Document = document): RunFile | null {
  const text = within.getElementById('run-file')?.textContent;
  return text ? (JSON.parse(text) as RunFile) : null;
}

/** Answers the page's requests from a file, and asks nobody. */
export function fetcherOf(file: RunFile): typeof fetch {
  const kept = new Map<string, Uint8Array<ArrayBuffer>>();
  const bytesOf = (name: string, text: string) => {
    const bytes = kept.get(name) ?? new TextEncoder().encode(text);
    kept.set(name, bytes);
    return bytes;
  };
  return (input, init) => {
    const url = new URL(String(input), 'http://file');
    const name = nameOf(file, url);
    if (name === null) return refused(404, 'not_found', `this file holds run ${file.run} alone`);
    const text = file.texts[name];
    if (text !== undefined) return Promise.resolve(part(bytesOf(name, text), new Headers(init?.headers)));
    const iter = name.split('/')[1];
    if (iter !== undefined && name.split('/').length > 2 && file.without_texts.includes(iter))
      return refused(410, 'left_out', `the texts of iteration ${iter} are left out of this file`);
    const reply = replyOf(file, name, url.searchParams);
    return reply === undefined
      ? refused(404, 'not_found', 'this file does not hold that')
      : Promise.resolve(Response.json(reply));
  };
}

/** What a request is for; null where it is about another repository or run. */
function nameOf(file: RunFile, url: URL): string | null {
  const [, , first, repo, what = 'run-state', run, ...rest] = url.pathname.split('/').map(decodeURIComponent);
  if (first !== 'repos' || repo === undefined) return first ?? '';
  const named = what === 'iterations' && run !== undefined ? run : url.searchParams.get('run');
  if (repo !== file.repo || (named !== null && named !== file.run)) return null;
  return [what, ...rest].join('/');
}

function replyOf(file: RunFile, name: string, query: URLSearchParams): unknown {
  const status = file.replies['run-state'] as StatusView | undefined;
  const from = Number(query.get('from') ?? 0);
  if (name === 'health') return health(file);
  if (name === 'repos') return status ? [status] : [];
  if (name === 'runs') return status?.run ? [status.run.summary] : [];
  const reply = file.replies[name];
  // All of it is in the first answer.
  if (name.endsWith('/activity') && reply !== undefined)
    return from > 0
      ? { steps: [], next_offset: from, complete: true }
      : { ...(reply as object), complete: true };
  if (name === 'iterations' && from > 0)
    return (reply as { iter: number }[] | undefined)?.filter((view) => view.iter >= from);
  return reply;
}

const health = (file: RunFile) => ({
  version: file.version,
  started_at: file.made_at,
  connected: false,
  as_of: file.made_at,
  static: true,
  only: file.repo,
  daemon: null,
});

/** The part of a text that is asked for; nobody writes it any more. */
function part(bytes: Uint8Array<ArrayBuffer>, headers: Headers): Response {
  const [, from = '0', to = ''] = /^bytes=(\d+)-(\d*)$/.exec(headers.get('Range') ?? '') ?? [];
  const about = { 'X-Runner-Size': String(bytes.length), 'X-Runner-Complete': 'true' };
  const end = to === '' ? bytes.length : Math.min(Number(to) + 1, bytes.length);
  if (Number(from) >= bytes.length) return new Response(null, { status: 416, headers: about });
  return new Response(bytes.slice(Number(from), end), { status: 206, headers: about });
}

function refused(status: number, code: string, message: string): Promise<Response> {
  return Promise.resolve(Response.json({ error: { code, message } }, { status }));
}
