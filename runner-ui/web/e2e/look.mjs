// Serves a world to look at: `node e2e/look.mjs [small|hostile|large]`.
import { standIn } from './standin.mjs';
import * as worlds from './worlds.mjs';

const world = worlds[process.argv[2] ?? 'small']();
console.log((await standIn(world)).url);
