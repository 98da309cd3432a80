import { expect, test } from "vitest";
import { setAside } from "../../../src/lua/ready/set-aside.ts";
import { run } from "../../../src/lua/script.ts";
import { bytes, newMoves, type Moves } from "../../helpers/moves.ts";

const put = ({ redis, keys }: Moves, unreadable: string) =>
  run(redis, setAside, keys, { bytes: bytes(unreadable) });

test.each([
  { what: "the first", before: [] },
  { what: "behind the others", before: ["\0", "older"] },
])("set-aside: $what", async ({ before }) => {
  const queue = await newMoves();
  await queue.seed({ quarantine: before, ready: ["ready"] });
  expect(await put(queue, "\xff{")).toBe(before.length + 1);
  expect(await queue.snapshot()).toEqual({ quarantine: [...before, "\xff{"], ready: ["ready"] });
});
