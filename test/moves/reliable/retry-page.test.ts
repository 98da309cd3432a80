import { expect, test } from "vitest";
import { retryPage } from "../../../src/lua/reliable/retries.ts";
import { run } from "../../../src/lua/script.ts";
import { bytes, message, newMoves, packRetry, retryName } from "../../helpers/moves.ts";
import type { Bytes, QueueState } from "../../helpers/moves.ts";

const [a, b] = [message("a", 1000, "key of a"), message("b", 1000)];
const [aInG, aInE, bInG] = [retryName(a, "g"), retryName(a, "é"), retryName(b, "g")];
const all = [aInG, aInE, bInG];

/** `a` is retrying in two groups, `b` in one. The others are foreign. */
const state: QueueState = {
  retries: [
    ["without a value", 1],
    ["\xffmalformed name", 2],
    [aInG, 2000],
    ["malformed value", 2500],
    [aInE, 3000.5],
  ],
  retrying: {
    [aInG]: packRetry(a, 1),
    [aInE]: packRetry(a, 2),
    [bInG]: packRetry(b, 3),
    "without a due time": packRetry(a, 4),
    "\xffmalformed name": packRetry(a, 5),
    "malformed value": "\x01\0\0\0\xff\0\0\0x",
  },
};
const never: QueueState = { retries: [[bInG, Infinity]], retrying: { [bInG]: packRetry(b, 3) } };

const retry = (
  { address, payload, key }: typeof a,
  group: string,
  due: number,
  attempts: number,
) => ({
  address: bytes(address),
  payload: bytes(payload),
  trailer: bytes(key),
  group,
  due,
  attempts,
});
const found = {
  aInG: retry(a, "g", 2000, 1),
  aInE: retry(a, "é", 3000.5, 2),
  bInG: retry(b, "g", Infinity, 3),
};

interface Row {
  readonly what: string;
  readonly before?: QueueState;
  readonly names: readonly Bytes[];
  readonly key?: string;
  readonly maxBytes?: number;
  readonly lookedUp: number;
  readonly retries: readonly (typeof found.aInG)[];
}

test.each<Row>([
  { what: "an empty queue", before: {}, names: all, lookedUp: 3, retries: [] },
  { what: "no names", names: [], lookedUp: 0, retries: [] },
  {
    what: "the order of the names",
    names: [aInE, aInG],
    lookedUp: 2,
    retries: [found.aInE, found.aInG],
  },
  {
    what: "a retry that is never due",
    before: never,
    names: all,
    lookedUp: 3,
    retries: [found.bInG],
  },
  {
    what: "a business key",
    names: all,
    key: a.key,
    lookedUp: 3,
    retries: [found.aInG, found.aInE],
  },
  { what: "an unknown business key", names: all, key: "key of b", lookedUp: 3, retries: [] },
  { what: "maxBytes reached", names: all, maxBytes: 1, lookedUp: 1, retries: [found.aInG] },
  {
    what: "maxBytes not quite reached",
    names: all,
    maxBytes: packRetry(a, 1).length + 1,
    lookedUp: 2,
    retries: [found.aInG, found.aInE],
  },
  {
    what: "foreign names and values are passed over",
    names: [
      "without a value",
      "without a due time",
      "\xffmalformed name",
      "malformed value",
      "",
      aInG,
    ],
    lookedUp: 6,
    retries: [found.aInG],
  },
])("retry-page: $what", async ({ before = state, names, lookedUp, retries, ...row }) => {
  const { key = "", maxBytes = 1e6 } = row;
  const queue = await newMoves();
  await queue.seed(before);
  const seeded = await queue.snapshot();
  const rows = names.map((name) => ({ name: bytes(name) }));
  const page = await run(queue.redis, retryPage, queue.keys, { key, maxBytes }, rows);
  expect(page).toEqual({ lookedUp, retries });
  expect(await queue.snapshot()).toEqual(seeded);
});
