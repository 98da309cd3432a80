import { expect, test } from "vitest";
import { pushReady } from "../../../src/lua/ready/ready.ts";
import { run } from "../../../src/lua/script.ts";
import { bytes, newMoves } from "../../helpers/moves.ts";

test.each<{ what: string; before: string[]; pushed: string[] }>([
  { what: "nothing to an empty LIST", before: [], pushed: [] },
  { what: "one payload to an empty LIST", before: [], pushed: ["a"] },
  { what: "several behind the others, in order", before: ["older"], pushed: ["b", "a", "c"] },
  { what: "the same payload twice", before: ["a"], pushed: ["a", "a"] },
  { what: "any bytes", before: ["a"], pushed: ["", "\0", "\xff{"] },
])("push-ready: $what", async ({ before, pushed }) => {
  const queue = await newMoves();
  await queue.seed({ ready: before, quarantine: ["unreadable"] });
  const rows = pushed.map((payload) => ({ payload: bytes(payload) }));
  const after = [...before, ...pushed];
  expect(await run(queue.redis, pushReady, queue.keys, {}, rows)).toBe(after.length);
  const { ready = [], ...others } = await queue.snapshot();
  expect(ready).toEqual(after);
  expect(others).toEqual({ quarantine: ["unreadable"] });
});
