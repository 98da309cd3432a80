import { expect, test } from "vitest";
import {
  FIRST_LETTERS,
  findDead,
  type LetterCursor,
} from "../../../src/lua/reliable/dead-letters.ts";
import { run } from "../../../src/lua/script.ts";
import { bytes, message, newMoves } from "../../helpers/moves.ts";
import type { Bytes, Message, QueueState } from "../../helpers/moves.ts";

const [a, b] = [message("a", 1000, "key of a"), message("b", 1001)];
const fieldsOf = ({ address, payload }: Message, trailer: Bytes) =>
  ["a", address, "p", payload, "t", trailer, "n", "5", "g", "g", "r", "Error"] as const;

/** Three letters of `a`, of which two have its key, and one of `b`. Between them are unreadable ones. */
const state: QueueState = {
  dead: [
    ["1-0", ...fieldsOf(a, a.key)],
    ["2-0", "a", b.address, "p", "no group", "t", a.key],
    ["3-0", ...fieldsOf(b, "\xff\x01malformed")],
    ["4-0", ...fieldsOf(a, "\xff\x01\x01\x08\0\0\0key of a")],
    ["5-7", "foreign", "\xff{"],
    ["6-0", ...fieldsOf(a, "\xff\x09key of a")],
  ],
};
const toTheEnd = (after: string): LetterCursor => ({ after, last: "6-0" });
/** The address of the unreadable letter 5-7, which is made from its id. */
const place = "\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\x07";

interface Row {
  readonly what: string;
  readonly before?: QueueState;
  readonly wanted?: Bytes;
  readonly key?: string;
  readonly cursor?: LetterCursor;
  readonly limit?: number;
  readonly maxBytes?: number;
  /** When the letters found have died. */
  readonly found: readonly number[];
  readonly next?: LetterCursor;
}

test.each<Row>([
  { what: "nothing in an empty queue", before: {}, wanted: a.address, found: [] },
  { what: "all letters with an address", wanted: a.address, found: [1, 4, 6] },
  { what: "no unreadable letter by an address in it", wanted: b.address, found: [3] },
  { what: "an unreadable letter by its entry's id", wanted: place, found: [5] },
  { what: "all letters with a business key", key: a.key, found: [1, 4] },
  { what: "nothing by an unknown address", wanted: message("x", 1000).address, found: [] },
  { what: "nothing by an unknown key", key: "key of b", found: [] },
  { what: "a page", wanted: a.address, limit: 3, found: [1], next: toTheEnd("3-0") },
  { what: "the next page", wanted: a.address, cursor: toTheEnd("3-0"), found: [4, 6] },
  { what: "a page without a match", wanted: b.address, limit: 2, found: [], next: toTheEnd("2-0") },
  // It reads two at first.
  { what: "a few behind maxBytes", key: a.key, maxBytes: 1, found: [1], next: toTheEnd("2-0") },
  {
    what: "no letter behind the one that was the newest at the beginning",
    wanted: a.address,
    cursor: { after: "1-0", last: "5-7" },
    found: [4],
  },
])("find-dead: finds $what", async ({ before = state, found, next, ...row }) => {
  const { wanted = "", key = "", cursor = FIRST_LETTERS, limit = 100, maxBytes = 1e6 } = row;
  const queue = await newMoves();
  await queue.seed(before);
  const args = { wanted: bytes(wanted), key, ...cursor, limit, maxBytes };
  const page = await run(queue.redis, findDead, queue.keys, args);
  expect(page.letters.map(({ diedAt }) => diedAt)).toEqual(found);
  expect(page.next).toEqual(next);
  expect(await queue.snapshot()).toEqual(before);
});
