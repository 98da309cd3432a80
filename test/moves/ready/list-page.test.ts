import { expect, test } from "vitest";
import { listPage } from "../../../src/lua/ready/list-page.ts";
import { run } from "../../../src/lua/script.ts";
import { bytes, newMoves } from "../../helpers/moves.ts";

/** "a" to "y". */
const letters = Array.from({ length: 25 }, (_, i) => String.fromCodePoint(97 + i));

test.each([
  { what: "an empty LIST", list: [], found: [] },
  { what: "a whole LIST", list: letters, found: letters },
  { what: "up to `step` elements", list: letters, step: 12, found: letters.slice(0, 12) },
  { what: "from a position on", list: letters, position: 3, step: 2, found: ["d", "e"] },
  { what: "the last page", list: letters, position: 24, step: 2, found: ["y"] },
  { what: "behind the end", list: letters, position: 25, found: [] },
  // It reads ten at a time.
  { what: "a few behind maxBytes", list: letters, maxBytes: 1, found: letters.slice(0, 10) },
  { what: "maxBytes, further on", list: letters, maxBytes: 11, found: letters.slice(0, 20) },
  { what: "any bytes", list: ["", "\0", "\xff{", "ready"], found: ["", "\0", "\xff{", "ready"] },
])("list-page: $what", async ({ list, position = 0, step = 100, maxBytes = 1e6, found }) => {
  const queue = await newMoves();
  await queue.seed({ quarantine: list });
  const before = await queue.snapshot();
  const keys = { list: queue.keys.quarantine };
  const page = await run(queue.redis, listPage, keys, { position, step, maxBytes });
  expect(page).toEqual(found.map(bytes));
  expect(await queue.snapshot()).toEqual(before);
});
