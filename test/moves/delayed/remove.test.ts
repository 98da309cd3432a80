import { describe, expect, test } from "vitest";
import { remove, removeElements } from "../../../src/lua/delayed/remove.ts";
import { run } from "../../../src/lua/script.ts";
import { asAddress, bytes, indexEntry, asMember, message, newMoves } from "../../helpers/moves.ts";
import type { Message, Moves } from "../../helpers/moves.ts";

const [a, b, c] = [message("a", 1000, "1"), message("b", 1000, "2"), message("c", 3000, "3")];
const gone = message("g", 1000, "4");

const byId = ({ address }: Message) => ({ id: bytes(address), key: "" });
const byKey = ({ key }: Message) => ({ id: "", key });

/** These messages are delayed, and the index has their keys. */
const stateOf = (all: readonly Message[]) => ({
  timeouts: all.map((one) => one.delayed),
  businessKeys: Object.fromEntries(all.map((one) => [one.key, indexEntry(one)])),
});

describe.each([
  { by: "element", order: "addresses", element: asAddress },
  { by: "element", order: "members", element: asMember },
  { by: "id", order: "addresses", element: asAddress },
  { by: "id", order: "members", element: asMember },
  { by: "key", order: "addresses", element: asAddress },
  { by: "key", order: "members", element: asMember },
] as const)("remove by $by, a LIST of $order", ({ by, order: elementsAre, element }) => {
  const isExact = elementsAre === "members";
  const cancel = async ({ redis, keys }: Moves, targets: readonly Message[]) => {
    if (by !== "element") {
      const rows = targets.map((target) => (by === "id" ? byId(target) : byKey(target)));
      return await run(redis, remove, keys, { elementsAre }, rows);
    }
    const rows = targets.map((target) => ({ element: bytes(element(target)) }));
    return await run(redis, removeElements, keys, { elementsAre }, rows);
  };

  test.each([
    { what: "one", targets: [b], answers: [true], left: [a, c] },
    { what: "several", targets: [c, a], answers: [true, true], left: [b] },
    { what: "one twice", targets: [b, b], answers: [true, false], left: [a, c] },
    { what: "one that is gone", targets: [gone, a], answers: [false, true], left: [b, c] },
    { what: "nothing that is there", targets: [gone], answers: [false], left: [a, b, c] },
  ])("$what", async ({ targets, answers, left }) => {
    const queue = await newMoves();
    const order = [c, a, b];
    await queue.seed({ ...stateOf([a, b, c]), order: order.map(element) });
    expect(await cancel(queue, targets)).toEqual(answers);
    // In a LIST of addresses the elements stay behind.
    const rest = isExact ? order.filter((one) => left.includes(one)) : order;
    expect(await queue.snapshot()).toEqual({ ...stateOf(left), order: rest.map(element) });
  });
});

test("one by id and by key in one script counts once", async () => {
  const queue = await newMoves();
  await queue.seed({ ...stateOf([a, b]), order: [a, b].map(asAddress) });
  const rows = [byKey(a), byId(a), byId(b), byKey(b)];
  expect(await run(queue.redis, remove, queue.keys, {}, rows)).toEqual([true, false, true, false]);
  expect(await queue.snapshot()).toEqual({ order: [a, b].map(asAddress) });
});
