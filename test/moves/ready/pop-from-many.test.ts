import { expect, test } from "vitest";
import { popFromMany } from "../../../src/lua/ready/ready.ts";
import { run } from "../../../src/lua/script.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";

/** The contents of each LIST, oldest first; a text is a key of another type. */
type Lists = readonly (readonly string[] | string)[];

/** Seeds LISTs of the test's own, and pops from them once. */
async function pop(before: Lists, count: number) {
  const redis = newRedis();
  const keys = before.map(() => uniqueName("list"));
  for (const [i, list] of before.entries()) {
    if (typeof list === "string") await redis.set(keys[i]!, list);
    else if (list.length > 0) await redis.rpush(keys[i]!, ...list);
  }
  const rows = keys.map((list) => ({ list }));
  const popped = await run(redis, popFromMany, {}, { count }, rows).catch((error: Error) => error);
  const left: (string[] | string | null)[] = [];
  for (const [i, list] of before.entries())
    left.push(
      typeof list === "string" ? await redis.get(keys[i]!) : await redis.lrange(keys[i]!, 0, -1),
    );
  return {
    popped:
      popped instanceof Error
        ? popped.message
        : popped.map(({ row, payload }) => `${row}:${payload.toString("latin1")}`),
    left,
  };
}

test.each([
  {
    what: "one of each, beginning with the first",
    before: [["a", "b"], ["c"], ["d"]],
    count: 2,
    popped: ["0:a", "1:c"],
    left: [["b"], [], ["d"]],
  },
  {
    what: "as many of each, the first ones more by one",
    before: [
      ["a", "b", "c"],
      ["d", "e", "f"],
      ["g", "h", "i"],
    ],
    count: 7,
    popped: ["0:a", "0:b", "0:c", "1:d", "1:e", "2:g", "2:h"],
    left: [[], ["f"], ["i"]],
  },
  {
    what: "what the poor do not have comes from the rich, in its order",
    before: [["a", "b", "c", "d", "e", "f"], [], ["g"], []],
    count: 6,
    popped: ["0:a", "0:b", "2:g", "0:c", "0:d", "0:e"],
    left: [["f"], [], [], []],
  },
  {
    what: "all that there is, if that is less",
    before: [[], ["a"], ["b", "c"]],
    count: 100,
    popped: ["1:a", "2:b", "2:c"],
    left: [[], [], []],
  },
  { what: "nothing where nothing is", before: [[], []], count: 5, popped: [], left: [[], []] },
  {
    what: "from the others, if one is refused",
    before: ["no list", ["a", "b"], "no list"],
    count: 2,
    popped: ["1:a", "1:b"],
    left: ["no list", [], "no list"],
  },
  {
    what: "nothing but the refusal, if that is all",
    before: [[], "no list"],
    count: 2,
    popped: expect.stringContaining("WRONGTYPE"),
    left: [[], "no list"],
  },
])("pop-from-many: $what", async ({ before, count, popped, left }) => {
  expect(await pop(before, count)).toEqual({ popped, left });
});
