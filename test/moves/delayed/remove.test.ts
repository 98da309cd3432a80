import { describe, expect, test } from "vitest";
import { removeByElement, removeById, removeByKey } from "../../../src/lua/delayed/remove.ts";
import { run } from "../../../src/lua/script.ts";
import { asAddress, bytes, indexEntry, asMember, message, newMoves } from "../../helpers/moves.ts";
import type { Message, Moves } from "../../helpers/moves.ts";

const [a, b, c] = [message("a", 1000, "1"), message("b", 1000, "2"), message("c", 3000, "3")];
const gone = message("g", 1000, "4");

const byId = ({ address }: Message) => bytes(address);
const byKey = ({ key }: Message) => key;
const byAddress = byId;
const byMember = ({ member }: Message) => bytes(member);

/** These messages are delayed, and the index has their keys. */
const stateOf = (all: readonly Message[]) => ({
  timeouts: all.map((one) => one.delayed),
  businessKeys: Object.fromEntries(all.map((one) => [one.key, indexEntry(one)])),
});

describe.each([
  {
    by: "element",
    isExact: false,
    script: removeByElement.addresses,
    of: byAddress,
    element: asAddress,
  },
  {
    by: "element",
    isExact: true,
    script: removeByElement.members,
    of: byMember,
    element: asMember,
  },
  { by: "id", isExact: false, script: removeById.addresses, of: byId, element: asAddress },
  { by: "id", isExact: true, script: removeById.members, of: byId, element: asMember },
  { by: "key", isExact: false, script: removeByKey.addresses, of: byKey, element: asAddress },
  { by: "key", isExact: true, script: removeByKey.members, of: byKey, element: asMember },
])("remove by $by (exact: $isExact)", ({ script, of, isExact, element }) => {
  const remove = ({ redis, keys }: Moves, targets: readonly Message[]) =>
    run(
      redis,
      script,
      keys,
      {},
      targets.map((target) => ({ wanted: of(target) })),
    );

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
    expect(await remove(queue, targets)).toEqual(answers);
    // In a LIST of addresses the elements stay behind.
    const rest = isExact ? order.filter((one) => left.includes(one)) : order;
    expect(await queue.snapshot()).toEqual({ ...stateOf(left), order: rest.map(element) });
  });
});
