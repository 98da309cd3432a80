import { expect, test } from "vitest";
import { trim } from "../../../src/lua/reliable/groups.ts";
import { run } from "../../../src/lua/script.ts";
import { newStreams, type Streams } from "../../helpers/streams.ts";

const trimming = ({ redis, keys }: Streams, limit = 100) => run(redis, trim, keys, { limit });

test("trim: deletes what every group has finished, from the head on", async () => {
  const queue = await newStreams();
  await queue.addGroup("g", "h", "gone");
  await queue.add("a", "b", "c", "d", "e");
  for (const group of ["g", "h"]) {
    const ids = await queue.deliver(group, "me", 4);
    // Both groups have finished "d", but "c" is in flight for one of them.
    const done = group === "g" ? [0, 1, 2, 3] : [0, 1, 3];
    await queue.redis.xack(queue.keys.stream, group, ...done.map((i) => ids[i] as string));
  }
  expect(await trimming(queue)).toBe(0);
  await queue.redis.xgroup("DESTROY", queue.keys.stream, "gone");
  expect(await trimming(queue, 1)).toBe(1);
  expect(await trimming(queue)).toBe(1);
  expect(await trimming(queue)).toBe(0);
  expect(await queue.snapshot()).toEqual({
    stream: [{ p: "c" }, { p: "d" }, { p: "e" }],
    inFlight: { h: { me: ["c"] } },
  });
});

test("trim: deletes nothing if a group has not begun, or without a group or a stream", async () => {
  const queue = await newStreams();
  expect(await trimming(queue)).toBe(0);
  await queue.add("a");
  expect(await trimming(queue)).toBe(0);
  await queue.addGroup("g");
  expect(await trimming(queue)).toBe(0);
  await queue.deliver("g", "me", 1);
  expect(await trimming(queue)).toBe(0);
  await queue.redis.xgroup("DESTROY", queue.keys.stream, "g");
  expect(await trimming(queue)).toBe(0);
  expect(await queue.snapshot()).toEqual({ stream: [{ p: "a" }] });
});
