import { expect, test } from "vitest";
import { requeue } from "../../../src/lua/ready/requeue.ts";
import { run } from "../../../src/lua/script.ts";
import { newMoves, type Moves } from "../../helpers/moves.ts";

const move = ({ redis, keys }: Moves, limit: number, maxBytes = 1000) =>
  run(redis, requeue, keys, { limit, maxBytes });

test("requeue: moves the oldest payloads to the end of the ready messages; members of unknown layout stay", async () => {
  const queue = await newMoves();
  await queue.seed({ ready: ["r"], quarantine: ["a", "\0", "\xff"], unreadable: ["garbage"] });
  expect(await move(queue, 2)).toBe(2);
  expect(await queue.snapshot()).toEqual({
    ready: ["r", "a", "\0"],
    quarantine: ["\xff"],
    unreadable: ["garbage"],
  });
  expect(await move(queue, 2)).toBe(1);
  expect(await move(queue, 2)).toBe(0);
  expect(await queue.snapshot()).toEqual({
    ready: ["r", "a", "\0", "\xff"],
    unreadable: ["garbage"],
  });
});

test("requeue: stops behind the payload that fills the page", async () => {
  const queue = await newMoves();
  await queue.seed({ quarantine: ["aaa", "bbb", "ccc"] });
  expect(await move(queue, 10, 4)).toBe(2);
  expect(await queue.snapshot()).toEqual({ ready: ["aaa", "bbb"], quarantine: ["ccc"] });
});

test("requeue: a refused push changes nothing", async () => {
  const queue = await newMoves();
  await queue.seed({ quarantine: ["a", "b"] });
  await queue.redis.set(queue.keys.ready, "somebody else's");
  await expect(move(queue, 2)).rejects.toThrow("WRONGTYPE");
  await queue.redis.del(queue.keys.ready);
  expect(await queue.snapshot()).toEqual({ quarantine: ["a", "b"] });
});
