// Stands in for the server: answers the page's requests from a world that is plain data, under the same rules for content.
// For what no live run has: enormous trees and logs, and agents that write hostile text everywhere.
import { createServer } from 'node:http';
import { readFile } from 'node:fs/promises';
import { extname } from 'node:path';

const dist = new URL('../dist/', import.meta.url);
const types = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml' };
const csp =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** Serves a world; `emit` sends an event to every stream, `cut` ends all of them. */
export async function standIn(world) {
  const streams = new Set();
  let number = 0;
  let asked = 0;
  const server = createServer((request, response) => {
    asked += 1;
    answer(world, streams, request, response).catch(() => response.writeHead(500).end());
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    world,
    url: `http://127.0.0.1:${server.address().port}/`,
    emit(event, data) {
      number += 1;
      for (const stream of streams)
        stream.write(`id: ${number}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
    },
    cut() {
      for (const stream of streams) stream.destroy();
    },
    streams: () => streams.size,
    /** How many requests were answered since the beginning, streams included. */
    answered: () => asked,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Serves a world while `act` is done with its server. */
export async function within(world, act) {
  const server = await standIn(world);
  try {
    await act(server);
  } finally {
    await server.close();
  }
}

async function answer(main, streams, request, response) {
  const url = new URL(request.url, 'http://127.0.0.1');
  const [base = '', at] = /^\/m\/(\d+)(?=\/|$)/.exec(url.pathname) ?? [];
  const world = at ? main.others[at - 1] : main;
  url.pathname = url.pathname.slice(base.length) || '/';
  if (world.down) return void request.socket.destroy();
  if (world.token && !isAllowed(world, url, request))
    return problem(response, 401, 'unauthorized', 'no token');
  if (url.pathname === '/events') return stream(world, streams, request, response);
  if (!url.pathname.startsWith('/api/')) return asset(url.pathname, response);
  const [, , first, repo, what, ...rest] = url.pathname.split('/').map(decodeURIComponent);
  if (first === 'session') return json(response, { ...world.health, steer_token: world.steerToken ?? null });
  if (first === 'health') return json(response, world.health);
  if (first !== 'repos') return problem(response, 404, 'not_found', 'no such path');
  if (!repo) return json(response, world.repos);
  const found = world.of(repo, url.searchParams.get('run'));
  if (!found) return problem(response, 404, 'not_found', 'no such repository');
  if (what === 'steer') return steer(world, request, response);
  if (what === 'iterations' && rest.length > 0) return record(found, rest, url, request, response);
  if (what === 'iterations') {
    const from = Number(url.searchParams.get('from') ?? 0);
    return json(
      response,
      found.iterations.filter((view) => view.iter >= from),
    );
  }
  const replies = {
    undefined: 'status',
    'run-state': 'status',
    tree: 'tree',
    runs: 'runs',
    memory: 'memory',
    questions: 'questions',
    config: 'config',
  };
  const reply = found[replies[what]];
  return reply ? json(response, reply) : problem(response, 404, 'not_found', 'no such path');
}

/** Keeps what was ordered, by whoever shows the token; `world.steered` answers it. */
async function steer(world, request, response) {
  if (request.method !== 'POST')
    return problem(response, 405, 'method_not_allowed', 'only POST is answered here');
  if (request.headers['x-runner-steer'] !== world.steerToken)
    return problem(response, 403, 'may_not_steer', 'this page may only look');
  let body = '';
  for await (const part of request) body += part;
  world.orders = [...(world.orders ?? []), JSON.parse(body)];
  if (world.refuses) return problem(response, 409, 'wrong_state', world.refuses);
  json(response, { summary: 'it is done', pending: false, waits_for: null });
}

/** As the real one: a token in a header gives a cookie, and everything but the page needs either. */
function isAllowed(world, url, request) {
  const isPage = url.pathname !== '/events' && !url.pathname.startsWith('/api/');
  const bearer = request.headers.authorization === `Bearer ${world.token}`;
  if (bearer) world.known = true;
  return isPage || bearer || world.known === true;
}

function record(found, [, iter, name], url, request, response) {
  const view = found.iterations.find((view) => String(view.iter) === iter);
  if (name === undefined)
    return view
      ? json(response, { iteration: view, record: '/r', meta: null, failures: found.failures?.(iter) ?? [] })
      : problem(response, 404, 'not_found', 'no such iteration');
  if (name === 'activity') {
    const from = Number(url.searchParams.get('from') ?? 0);
    const steps = (found.steps?.(iter) ?? []).filter((step) => step.offset >= from);
    return json(response, { steps, next_offset: from + steps.length, complete: true });
  }
  const bytes = found.text(iter, name);
  if (!bytes) return problem(response, 404, 'not_found', 'there is no such text');
  const [, from, to] = /bytes=(\d+)-(\d*)/.exec(request.headers.range ?? '') ?? [null, '0', ''];
  const headers = {
    'Content-Type': 'text/plain; charset=utf-8',
    'X-Runner-Size': bytes.length,
    'X-Runner-Complete': String(!found.live?.(iter)),
  };
  if (Number(from) >= bytes.length) return void response.writeHead(416, headers).end();
  response.writeHead(206, headers).end(bytes.subarray(Number(from), to === '' ? undefined : Number(to) + 1));
}

function stream(world, streams, request, response) {
  response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' });
  response.write(`retry: 500\nevent: hello\ndata: ${JSON.stringify(world.health)}\n\n`);
  streams.add(response);
  request.on('close', () => streams.delete(response));
}

async function asset(path, response) {
  const name = path === '/' ? 'index.html' : path.slice(1);
  const bytes = await readFile(new URL(name, dist)).catch(() => null);
  if (!bytes) return void response.writeHead(404).end();
  response
    .writeHead(200, { 'Content-Type': types[extname(name)] ?? 'text/plain', 'Content-Security-Policy': csp })
    .end(bytes);
}

function json(response, value) {
  response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(value));
}

function problem(response, status, code, message) {
  response
    .writeHead(status, { 'Content-Type': 'application/json' })
    .end(JSON.stringify({ error: { code, message, hint: null, as_of: null } }));
}
