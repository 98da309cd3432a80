import { describe, expect, test } from "vitest";
import { tidyAddresses, tidyMembers } from "../../../src/lua/delayed/tidy.ts";
import { sweep, transfer } from "../../../src/lua/delayed/transfer.ts";
import { run } from "../../../src/lua/script.ts";
import { createId, packMember } from "../../../src/queue/message/message.ts";
import {
  asAddress,
  indexEntry,
  asMember,
  message,
  newMoves,
  type Moves,
} from "../../helpers/moves.ts";

const FAR = 5_000_000_000_000;
const [a, b] = [message("a", 1000), message("b", 2000, "key of b")];
const [far, further] = [message("f", FAR), message("g", FAR + 1, "key of g")];
const poison = "no message";

/** A member whose id contains the instant of its offer (epoch ms). */
const offered = (at: number) => packMember(createId(at * 1000), Buffer.from("payload"));

describe.each([
  {
    name: "transfer",
    order: "addresses",
    script: transfer.list,
    element: asAddress,
    isExact: false,
  },
  {
    name: "transfer",
    order: "members",
    script: transfer.list,
    element: asMember,
    isExact: true,
  },
  {
    name: "sweep",
    order: "addresses",
    script: sweep.list,
    element: asAddress,
    isExact: false,
  },
  { name: "sweep", order: "members", script: sweep.list, element: asMember, isExact: true },
] as const)("$name, a LIST of $order", ({ name, order, script, element, isExact }) => {
  async function move(
    { redis, keys }: Moves,
    { limit = 100, claim = 1, grace = 0, mark = 0 } = {},
  ) {
    const reply = await run(redis, script, keys, {
      limit,
      grace,
      claim,
      task: "me",
      known: 0,
      elementsAre: order,
      makes: 0,
      mark,
    });
    const { moved, quarantined, next, isOutrun, untidy } = reply;
    return { moved, quarantined, next, isOutrun, untidy };
  }
  /** What a sweep also returns. Elements of addresses stay behind, and are dead. */
  const untidy = (found: { order: boolean; businessKeys: boolean }) =>
    name === "sweep" ? { untidy: { ...found, once: false } } : { untidy: undefined };
  const tidy = untidy({ order: false, businessKeys: false });
  const dead = untidy({ order: !isExact, businessKeys: false });
  /** What a sweep also leaves, if the LIST holds messages. */
  const found = name === "sweep" ? { listed: "1" } : {};

  test("the reply says since when the oldest was due, but not before its offer", async () => {
    const args = {
      limit: 100,
      grace: 0,
      claim: 0,
      task: "me",
      known: 0,
      elementsAre: order,
      makes: 0,
      mark: 0,
    };
    const { redis, keys } = await newMoves();
    const java = packMember(Buffer.alloc(16, 0xff), Buffer.from("payload"));
    const since = async (...members: [number, Buffer | string][]) => {
      await redis.zadd(keys.timeouts, ...members.flat());
      return (await run(redis, script, keys, args)).dueSince;
    };
    expect(await since([500, poison], [2000, offered(1500)], [3000, offered(1)])).toBe(2000);
    expect(await since([1000, offered(1500)])).toBe(1500);
    expect(await since([1000, java])).toBe(1000);
    expect(await since([FAR, java])).toBeUndefined();
  });

  test("due messages become ready and their keys are dropped; the rest stays", async () => {
    const queue = await newMoves();
    await queue.seed({
      timeouts: [a.delayed, b.delayed, far.delayed, further.delayed],
      order: [far, b, a, further].map(element),
      businessKeys: { "key of b": indexEntry(b), "key of g": indexEntry(further) },
      ready: ["ready before"],
    });
    expect(await move(queue)).toEqual({
      moved: 2,
      quarantined: 0,
      next: FAR,
      isOutrun: false,
      ...tidy,
    });
    expect(await queue.snapshot()).toEqual({
      timeouts: [far.delayed, further.delayed],
      order: (isExact ? [far, further] : [far, b, a, further]).map(element),
      businessKeys: { "key of g": indexEntry(further) },
      ready: ["ready before", "a", "b"],
      ...found,
      mover: "me",
    });
  });

  test.each([
    { what: "nothing is due", mover: undefined, isOutrun: false },
    { what: "nothing is due, and another task has moved", mover: "you", isOutrun: true },
  ])("$what", async ({ mover, isOutrun }) => {
    const queue = await newMoves();
    const before = {
      timeouts: [far.delayed],
      order: [element(far)],
      ...(mover !== undefined && { mover }),
    };
    await queue.seed(before);
    expect(await move(queue)).toEqual({ moved: 0, quarantined: 0, next: FAR, isOutrun, ...tidy });
    expect(await queue.snapshot()).toEqual(before);
  });

  test("what a message has collected becomes elements of the LIST, in order, and it moves as one", async () => {
    const queue = await newMoves();
    const many = Array.from({ length: 6000 }, (_, i) => `payload ${i}`);
    const collected = many.map((payload) => Buffer.from(payload));
    const several = message("c", 1500, "key of c", { collected, deliverWithin: 1e13 });
    // A field that looks like one, and is none.
    const other = message("d", 1700, "key of d", { headers: { from: "\x0b" } });
    await queue.seed({
      timeouts: [a.delayed, several.delayed, other.delayed, b.delayed, far.delayed],
      order: [a, several, other, b, far].map(element),
      businessKeys: { "key of c": indexEntry(several) },
    });
    expect(await move(queue)).toMatchObject({ moved: 4, next: FAR });
    expect(await queue.snapshot()).toMatchObject({
      timeouts: [far.delayed],
      ready: ["a", ...many, "c", "d", "b"],
    });
    expect(await queue.redis.exists(queue.keys.businessKeys)).toBe(0);
  });

  test("moves no more than its limit, and makes no claim", async () => {
    const queue = await newMoves();
    await queue.seed({ timeouts: [a.delayed, b.delayed], order: [a, b].map(element) });
    expect(await move(queue, { limit: 1, claim: 0 })).toEqual({
      moved: 1,
      quarantined: 0,
      next: 2000,
      isOutrun: false,
      ...dead,
    });
    expect(await queue.snapshot()).toEqual({
      timeouts: [b.delayed],
      order: (isExact ? [b] : [a, b]).map(element),
      ready: ["a"],
      ...found,
    });
  });

  test("unreadable members go to the quarantine", async () => {
    const queue = await newMoves();
    await queue.seed({
      timeouts: [[poison, 500], a.delayed, far.delayed],
      order: [poison, element(a), element(far)],
    });
    expect(await move(queue)).toMatchObject({ moved: 1, quarantined: 1, next: FAR });
    expect(await queue.snapshot()).toEqual({
      timeouts: [far.delayed],
      order: isExact ? [element(far)] : [poison, element(a), element(far)],
      ready: ["a"],
      ...found,
      unreadable: [poison],
      mover: "me",
    });
  });

  test("a sweep moves nothing of a paused queue", async () => {
    const queue = await newMoves();
    const paused = {
      timeouts: [a.delayed, far.delayed],
      order: [a, far].map(element),
      paused: "1",
    };
    await queue.seed(paused);
    const look = {
      limit: 100,
      grace: 0,
      claim: 0,
      task: "me",
      known: 0,
      elementsAre: order,
      makes: 0,
      mark: 0,
    };
    const { isPaused, moved } = await run(queue.redis, script, queue.keys, look);
    // A transfer does not check the pause.
    expect({ isPaused, moved }).toEqual(
      name === "sweep" ? { isPaused: true, moved: 0 } : { isPaused: undefined, moved: 1 },
    );
    if (name === "sweep") expect(await queue.snapshot()).toEqual(paused);
    await queue.redis.del(queue.keys.paused);
    const after = await run(queue.redis, script, queue.keys, look);
    expect(moved + after.moved).toBe(1);
    expect(after.isPaused).toBe(name === "sweep" ? false : undefined);
  });

  test("who has to mark the LIST does so when it moves a message there", async () => {
    const queue = await newMoves();
    await queue.seed({ timeouts: [far.delayed], order: [element(far)] });
    await move(queue, { mark: 1 });
    expect(await queue.snapshot()).not.toHaveProperty("listed");
    await queue.seed({ timeouts: [a.delayed] });
    await move(queue, { mark: 1 });
    expect(await queue.snapshot()).toMatchObject({ ready: ["a"], listed: "1" });
    expect(await queue.redis.ttl(queue.keys.listed)).toBeGreaterThan(29 * 86_400);
  });

  test("a sweep marks a LIST that somebody else has filled, until it is empty", async () => {
    const queue = await newMoves();
    const isListed = async () => {
      const args = {
        limit: 100,
        grace: 0,
        claim: 0,
        task: "me",
        known: 0,
        elementsAre: order,
        makes: 0,
        mark: 0,
      };
      const reply = await run(queue.redis, script, queue.keys, args);
      const mark = await queue.redis.get(queue.keys.listed);
      return { told: reply.isListed, isMarked: mark !== null };
    };
    const isSweep = name === "sweep";
    await queue.seed({ ready: ["pushed by another"] });
    expect(await isListed()).toEqual({ told: isSweep ? true : undefined, isMarked: isSweep });
    await queue.redis.del(queue.keys.ready);
    expect(await isListed()).toEqual({ told: isSweep ? false : undefined, isMarked: false });
  });

  test("a sweep tells of partitions", async () => {
    const queue = await newMoves();
    const { partitions, paused } = queue.keys;
    const look = {
      limit: 100,
      grace: 0,
      claim: 0,
      task: "me",
      known: 0,
      elementsAre: order,
      makes: 0,
      mark: 0,
    };
    const told = async () => (await run(queue.redis, script, queue.keys, look)).fact;
    expect(await told()).toBeUndefined();
    await queue.redis.set(partitions, "1:4:0:moving:1");
    const fact = name === "sweep" ? "1:4:0:moving:1" : undefined;
    expect(await told()).toBe(fact);
    await queue.redis.set(paused, "1");
    expect(await told()).toBe(fact);
    await queue.redis.del(partitions);
    await queue.redis.rpush(partitions, "of another type");
    expect(await told()).toBeUndefined();
  });

  test("what is left of an empty queue waits for tidying", async () => {
    const queue = await newMoves();
    const strays = { order: [element(far)], compacted: [element(a)] };
    const other = { "key of g": indexEntry(further) };
    await queue.seed({
      timeouts: [b.delayed],
      ...strays,
      order: [...strays.order, element(b)],
      businessKeys: { "key of b": indexEntry(b), ...other },
    });
    expect(await move(queue)).toEqual({
      moved: 1,
      quarantined: 0,
      next: Infinity,
      isOutrun: false,
      ...untidy({ order: true, businessKeys: true }),
    });
    expect(await queue.snapshot()).toEqual({
      ready: ["b"],
      ...strays,
      ...(!isExact && { order: [...strays.order, element(b)] }),
      businessKeys: other,
      ...found,
      mover: "me",
    });
    const { redis, keys } = queue;
    await (isExact
      ? run(redis, tidyMembers, keys, { step: 10 })
      : run(redis, tidyAddresses, keys, { step: 10, thorough: 0 }));
    expect(await queue.snapshot()).toEqual({ ready: ["b"], ...found, mover: "me" });
  });
});
