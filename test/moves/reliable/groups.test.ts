import { expect, test } from "vitest";
import { groups } from "../../../src/lua/reliable/groups.ts";
import { run } from "../../../src/lua/script.ts";
import { newStreams, type Streams } from "../../helpers/streams.ts";

const names = ({ redis, keys }: Streams) => run(redis, groups, keys, {});

test.each<{ what: string; added: string[]; entries: string[] }>([
  { what: "none without a stream", added: [], entries: [] },
  { what: "none in a stream without groups", added: [], entries: ["a"] },
  { what: "all names", added: ["g", "h", "zoë"], entries: ["a", "b"] },
])("groups: $what", async ({ added, entries }) => {
  const queue = await newStreams(...added);
  await queue.add(...entries);
  const before = await queue.snapshot();
  expect(await names(queue)).toEqual(added);
  expect(await queue.snapshot()).toEqual(before);
  expect(await queue.redis.exists(queue.keys.stream)).toBe(
    added.length + entries.length > 0 ? 1 : 0,
  );
});

test("groups: fails for a key of another type", async () => {
  const queue = await newStreams();
  await queue.redis.set(queue.keys.stream, "somebody else's");
  await expect(names(queue)).rejects.toThrow(/WRONGTYPE/);
});
