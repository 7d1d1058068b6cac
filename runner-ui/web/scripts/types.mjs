// Writes src/wire.ts from the schemas of the protocol: the page has no second description of what the server says.
import { readFile, writeFile } from 'node:fs/promises';
import { compile } from 'json-schema-to-typescript';

const schemas = new URL('../../../schemas/', import.meta.url);
const out = new URL('../src/wire.ts', import.meta.url);

/** What the page reads; everything that these refer to comes along. */
const wanted = {
  'rpc.v1.schema.json': [
    'StatusView',
    'TreeReply',
    'RunSummary',
    'IterationView',
    'IterationReply',
    'QuestionView',
    'ConfigShowReply',
    'MemoryReply',
    'ActivityReply',
    'Event',
  ],
  'web.v1.schema.json': ['Health', 'Session', 'Steer', 'Steered', 'RunFile'],
};

const banner = '/* Generated from schemas/ by scripts/types.mjs (`npm run types`). Do not edit. */';

const defs = {};
const roots = {};
for (const [name, list] of Object.entries(wanted)) {
  const file = new URL(name, schemas);
  const schema = JSON.parse(await readFile(file, 'utf8'));
  Object.assign(defs, schema.$defs);
  for (const title of list) roots[title] = { $ref: `#/$defs/${title}` };
}

/** Without limits and defaults, which are not types; a reference with a comment would become a type of its own. */
const dropped = new Set(['default', 'format', 'minimum', 'maximum', 'minItems', 'maxItems']);
function strip(value) {
  if (Array.isArray(value)) return value.map(strip);
  if (value === null || typeof value !== 'object') return value;
  if (value.$ref) return { $ref: value.$ref };
  const kept = Object.entries(value).filter(
    ([key, inner]) => !(dropped.has(key) && typeof inner !== 'object'),
  );
  return Object.fromEntries(kept.map(([key, inner]) => [key, strip(inner)]));
}

const root = { type: 'object', additionalProperties: false, properties: roots, $defs: strip(defs) };
const text = await compile(root, 'Wire', {
  bannerComment: banner,
  additionalProperties: false,
  format: true,
  style: { singleQuote: true, printWidth: 110 },
});
await writeFile(out, text);
