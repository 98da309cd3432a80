import { expect, test } from "vitest";
import { KEPT, noteActivity } from "../../../src/lua/queue/activity.ts";
import { run } from "../../../src/lua/script.ts";
import { newMoves } from "../../helpers/moves.ts";

test("note-activity: the newest entry first, and none twice; it expires", async () => {
  const queue = await newMoves();
  const note = (entry: string) => run(queue.redis, noteActivity, queue.keys, { entry });
  for (const entry of ["a []", "b []", "b []"]) await note(entry);
  expect(await queue.snapshot()).toEqual({ activity: ["b []", "a []"] });
  expect(await queue.redis.ttl(queue.keys.activity)).toBeGreaterThan(89 * 86_400);
});

test("note-activity: the log does not grow beyond its last entries", async () => {
  const queue = await newMoves();
  await queue.seed({ activity: Array.from({ length: KEPT }, (_, i) => `old ${i}`) });
  await run(queue.redis, noteActivity, queue.keys, { entry: "new" });
  const { activity = [] } = await queue.snapshot();
  expect(activity).toHaveLength(KEPT);
  expect(activity.slice(0, 2)).toEqual(["new", "old 0"]);
});
