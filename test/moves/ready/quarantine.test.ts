import { expect, test } from "vitest";
import {
  countQuarantined,
  listPage,
  removeQuarantined,
  requeue,
  requeueQuarantined,
  quarantineBytes,
} from "../../../src/lua/ready/quarantine.ts";
import { run } from "../../../src/lua/script.ts";
import { digestOf } from "../../../src/queue/quarantine-elements.ts";
import { bytes, newMoves, type Moves } from "../../helpers/moves.ts";

const put = ({ redis, keys }: Moves, unreadable: string) =>
  run(redis, quarantineBytes, keys, { bytes: bytes(unreadable) });

test.each([
  { what: "the first", before: [] },
  { what: "behind the others", before: ["\0", "older"] },
])("quarantine-bytes: $what", async ({ before }) => {
  const queue = await newMoves();
  await queue.seed({ quarantine: before, ready: ["ready"] });
  expect(await put(queue, "\xff{")).toBe(before.length + 1);
  expect(await queue.snapshot()).toEqual({ quarantine: [...before, "\xff{"], ready: ["ready"] });
});

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

const rows = (...found: [position: number, element: string][]) =>
  found.map(([position, element]) => ({ position, digest: digestOf(bytes(element)) }));

test("count-quarantined, requeue-quarantined, remove-quarantined: only what still is in its place", async () => {
  const queue = await newMoves();
  const { redis, keys } = queue;
  const seeded = { ready: ["r"], quarantine: ["a", "b", "\xff", "b", "c"] };
  await queue.seed(seeded);
  const chosen = rows([0, "a"], [1, "c"], [3, "b"], [9, "x"]);
  expect(await run(redis, countQuarantined, keys, {}, chosen)).toBe(2);
  expect(await queue.snapshot()).toEqual(seeded);
  expect(await run(redis, requeueQuarantined, keys, { mark: "mark" }, chosen)).toBe(2);
  expect(await queue.snapshot()).toEqual({
    ready: ["r", "a", "b"],
    quarantine: ["b", "\xff", "c"],
  });
  expect(await run(redis, requeueQuarantined, keys, { mark: "mark" }, rows([1, "b"]))).toBe(0);
  expect(
    await run(redis, removeQuarantined, keys, { mark: "mark" }, rows([0, "b"], [2, "c"])),
  ).toBe(2);
  expect(await queue.snapshot()).toEqual({ ready: ["r", "a", "b"], quarantine: ["\xff"] });
});
