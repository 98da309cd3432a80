/**
 * A page is indexed two seconds after its last change, but no later than ten seconds after the first.
 *
 *   npx tsx examples/recipes/debounce.ts
 *
 * The page: docs/recipes/debounce.md.
 */
import assert from "node:assert/strict";
import { Delayline } from "delayline";
import { startRedis, testClock } from "delayline/testing";

await using server = await startRedis();
// A clock that stands still until this program lets time pass. In production: no clock.
await using clock = await testClock({ now: "2026-03-28T08:00:00Z" });
await using line = new Delayline({ redis: server.url });

const indexing = line.getReliableQueue<string>(`indexing-${process.pid}`);

async function onChange(page: string): Promise<void> {
  await indexing.offer(page, 2_000, {
    key: `page:${page}`,
    onDuplicate: "replace", // the new deadline counts
    maxWait: 10_000, // from the first offer since the key was last free
  });
}

const indexed: string[] = [];
indexing.subscribe((page) => {
  // Read the page here: what counts is its state now, not when it was changed.
  indexed.push(`${page} at ${clock.now.toISOString().slice(11, 19)}`);
});

// Three changes in two seconds: one run, two seconds after the last.
for (let change = 0; change < 3; change++) {
  await onChange("/about");
  await clock.advance("1 s");
}
await clock.advance("1 s");
assert.deepEqual(indexed, ["/about at 08:00:04"]);

// Somebody types for 15 seconds without a pause: it is indexed after ten all the same.
for (let change = 0; change < 15; change++) {
  await onChange("/news");
  await clock.advance("1 s");
}
await clock.advance("1 min");
console.log(indexed);
assert.deepEqual(indexed.slice(1), ["/news at 08:00:14", "/news at 08:00:20"]);
