import { expect, test } from "vitest";
import { get } from "../../../src/lua/delayed/get.ts";
import { run } from "../../../src/lua/script.ts";
import { bytes, indexEntry, message, newMoves } from "../../helpers/moves.ts";
import type { Message, QueueState } from "../../helpers/moves.ts";

const [a, b] = [message("a", 1000, "key of a"), message("b", 1000, "key of b")];
/** Its message has left, but its entry is still in the index. */
const gone = message("g", 1000, "key of g");
const state: QueueState = {
  timeouts: [a.delayed, b.delayed],
  order: [a.address, b.address],
  businessKeys: {
    "key of a": indexEntry(a),
    "key of b": indexEntry(b),
    "key of g": indexEntry(gone),
    foreign: "\xff{",
    "of another": indexEntry(a),
  },
};
const both = ["key of a", "key of b"];

interface Row {
  readonly what: string;
  readonly before?: QueueState;
  readonly asked: readonly string[];
  readonly maxBytes?: number;
  readonly lookedUp: number;
  readonly found: readonly Message[];
}

test.each<Row>([
  { what: "an empty queue", before: {}, asked: both, lookedUp: 2, found: [] },
  { what: "no keys", asked: [], lookedUp: 0, found: [] },
  { what: "the order of the keys", asked: both.toReversed(), lookedUp: 2, found: [b, a] },
  { what: "a key asked twice", asked: ["key of a", "key of a"], lookedUp: 2, found: [a, a] },
  { what: "an unknown key", asked: ["no key", ...both], lookedUp: 3, found: [a, b] },
  { what: "a key whose message has left", asked: ["key of g"], lookedUp: 1, found: [] },
  { what: "a foreign entry", asked: ["foreign", "key of b"], lookedUp: 2, found: [b] },
  { what: "the entry of another key's message", asked: ["of another"], lookedUp: 1, found: [] },
  { what: "maxBytes reached", asked: both, maxBytes: a.member.length, lookedUp: 1, found: [a] },
  {
    what: "maxBytes not quite reached",
    asked: both,
    maxBytes: a.member.length + 1,
    lookedUp: 2,
    found: [a, b],
  },
])("get by keys: $what", async ({ before = state, asked, maxBytes = 1e6, lookedUp, found }) => {
  const queue = await newMoves();
  await queue.seed(before);
  const rows = asked.map((key) => ({ id: "", key }));
  expect(await run(queue.redis, get, queue.keys, { maxBytes }, rows)).toEqual({
    lookedUp,
    messages: found.map(({ deadline, member }) => ({
      place: "delayed",
      deadline,
      member: bytes(member),
    })),
  });
  expect(await queue.snapshot()).toEqual(before);
});
