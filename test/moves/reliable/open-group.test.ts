import type { Redis } from "ioredis";
import { expect, test } from "vitest";
import { openGroup } from "../../../src/lua/reliable/groups.ts";
import { run } from "../../../src/lua/script.ts";
import { newMoves, type Moves } from "../../helpers/moves.ts";

const before = { a: "somewhere", p: "before" };

async function open({ redis, keys }: Moves, start = "0", group = "workers"): Promise<boolean> {
  return await run(redis, openGroup, keys, { channel: keys.channel, group, start });
}

/** The groups of a stream, and how far they have read. */
async function groupsOf(redis: Redis, stream: string): Promise<Record<string, unknown>> {
  const groups = (await redis.xinfo("GROUPS", stream)) as unknown[][];
  return Object.fromEntries(
    groups.map((fields) => [
      fields[fields.indexOf("name") + 1],
      fields[fields.indexOf("last-delivered-id") + 1],
    ]),
  );
}

test("creates the group and the stream, and publishes a wake-up", async () => {
  const queue = await newMoves();
  expect(await open(queue)).toBe(true);
  expect(await groupsOf(queue.redis, queue.keys.stream)).toEqual({ workers: "0-0" });
  expect(await queue.snapshot()).toEqual({ groups: ["workers"], channel: ["0"] });
});

test("does not change an existing group, and publishes nothing", async () => {
  const queue = await newMoves();
  await open(queue);
  await queue.seed({ stream: [before] });
  await queue.redis.xreadgroup(
    "GROUP",
    "workers",
    "me",
    "COUNT",
    1,
    "STREAMS",
    queue.keys.stream,
    ">",
  );
  const groups = await groupsOf(queue.redis, queue.keys.stream);
  expect(await open(queue)).toBe(false);
  expect(await groupsOf(queue.redis, queue.keys.stream)).toEqual(groups);
  expect(await queue.snapshot()).toEqual({
    stream: [before],
    groups: ["workers"],
    channel: ["0"],
  });
});

test("a group begins at the given id", async () => {
  const queue = await newMoves();
  await queue.seed({ stream: [before] });
  const last = (await queue.redis.xrange(queue.keys.stream, "-", "+"))[0]?.[0];
  expect(await open(queue, "0", "from the first")).toBe(true);
  expect(await open(queue, "$", "from the next")).toBe(true);
  expect(await open(queue, "1234-0", "from then on")).toBe(true);
  expect(await groupsOf(queue.redis, queue.keys.stream)).toEqual({
    "from the first": "0-0",
    "from the next": last,
    "from then on": "1234-0",
  });
  // The stream existed before.
  const groups = ["from the first", "from the next", "from then on"];
  expect(await queue.snapshot()).toEqual({ stream: [before], groups });
});

test("fails for a key of another type", async () => {
  const queue = await newMoves();
  await queue.redis.set(queue.keys.stream, "no stream");
  await expect(open(queue)).rejects.toThrow("WRONGTYPE");
  expect(await queue.redis.get(queue.keys.stream)).toBe("no stream");
  expect(await queue.snapshot()).toEqual({});
});
