import { describe, expect, test } from "vitest";
import { remove, removeElements } from "../../../src/lua/delayed/remove.ts";
import { run } from "../../../src/lua/script.ts";
import { asAddress, bytes, indexEntry, asMember, message, newMoves } from "../../helpers/moves.ts";
import type { Message, Moves } from "../../helpers/moves.ts";
import { newRedis, redisUrl } from "../../helpers/redis.ts";

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

const beginningOf = ({ member }: Message) => member.slice(0, 17);
const cancelById = ({ redis, keys }: Moves, targets: readonly Message[]) =>
  run(redis, remove, keys, { elementsAre: "addresses" }, targets.map(byId));

describe("among equal deadlines", () => {
  const at = 5000;
  const equal = Array.from("defghi", (payload) => message(payload, at, `key of ${payload}`));
  const [first, second, third] = equal as [Message, Message, Message];

  test("each is found, whichever it is, and nothing else leaves", async () => {
    const queue = await newMoves();
    for (const target of equal) {
      await queue.redis.del(queue.keys.timeouts, queue.keys.businessKeys);
      await queue.seed(stateOf([a, ...equal, message("z", at + 1)]));
      expect(await cancelById(queue, [target])).toEqual([true]);
      const rest = equal.filter((one) => one !== target);
      expect(await queue.snapshot()).toEqual(stateOf([a, ...rest, message("z", at + 1)]));
    }
  });

  test("one that is gone, or has another deadline now, is not", async () => {
    const queue = await newMoves();
    const later = { ...third, delayed: [third.member, at + 1] as const };
    const there = [first, second, later];
    await queue.seed(stateOf(there));
    expect(await cancelById(queue, [third, message("y", at), message("b", at)])).toEqual([
      false,
      false,
      false,
    ]);
    expect(await queue.snapshot()).toEqual(stateOf(there));
  });

  test.each([
    { what: "its beginning", foreign: beginningOf(third) },
    { what: "a broken copy", foreign: `${beginningOf(third)}\u0001` },
  ])("a foreign member that is $what stays", async ({ foreign }) => {
    const queue = await newMoves();
    const { timeouts, businessKeys } = stateOf([first, second]);
    await queue.seed({
      ...stateOf([first, second, third]),
      timeouts: [...timeouts, [foreign, at], third.delayed],
    });
    expect(await cancelById(queue, [third])).toEqual([true]);
    expect(await queue.snapshot()).toEqual({
      timeouts: [...timeouts, [foreign, at]],
      businessKeys,
    });
  });

  test.each([
    { what: "may not write to the ZSET", rule: "-zadd" },
    { what: "may not count, as a search does", rule: "-zcount" },
  ])("a user who $what cancels", async ({ rule }) => {
    const queue = await newMoves();
    await queue.seed(stateOf(equal));
    const user = `u-${queue.keys.ready}`;
    await queue.redis.acl("SETUSER", user, "on", "nopass", "~*", "&*", "+@all", rule);
    const redis = newRedis(redisUrl(), { username: user, password: "any" });
    const rows = [byId(third)];
    expect(await run(redis, remove, queue.keys, { elementsAre: "addresses" }, rows)).toEqual([
      true,
    ]);
    await queue.redis.acl("DELUSER", user);
    expect(await queue.snapshot()).toEqual(stateOf(equal.filter((one) => one !== third)));
  });
});
