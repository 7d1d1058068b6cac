import assert from "node:assert/strict";
import { test } from "node:test";
import { Cache } from "../dist/cache.js";

test("what was not used for the longest time gives its place", () => {
  const cache = new Cache({ places: 2 });
  cache.set("a", 1);
  cache.set("b", 2);
  cache.get("a");
  cache.set("c", 3);
  assert.equal(cache.has("b"), false);
  assert.equal(cache.get("a"), 1);
  assert.equal(cache.size, 2);
});
