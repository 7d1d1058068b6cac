import assert from "node:assert/strict";
import { test } from "node:test";
import { Cache } from "../dist/cache.js";

test("what is too old is not there", () => {
  let time = 0;
  const cache = new Cache({ places: 2, maxAgeMs: 10, now: () => time });
  cache.set("a", 1);
  time = 10;
  assert.equal(cache.has("a"), false);
  assert.equal(cache.size, 0);
});
