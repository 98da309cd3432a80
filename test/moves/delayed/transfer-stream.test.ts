import { describe, expect, test } from "vitest";
import type { Elements } from "../../../src/lua/family.ts";
import { sweep, transfer, type TransferReply } from "../../../src/lua/delayed/transfer.ts";
import { run } from "../../../src/lua/script.ts";
import { packAddress, packMember } from "../../../src/queue/message/message.ts";
import {
  asAddress,
  asMember,
  bytes,
  indexEntry,
  message,
  newMoves,
  retryFor,
  type Bytes,
  type Fields,
  type Message,
  type Moves,
} from "../../helpers/moves.ts";
import { startOwnServer } from "../../helpers/own-server.ts";

const FAR = 5_000_000_000_000;
const [a, b, c] = [message("a", 1000), message("b", 2000, "key of b"), message("c", 3000)];
const [far, further] = [message("f", FAR), message("g", FAR + 1, "key of g")];
const poison = "no message";

/** A message as an entry. */
const entry = ({ address, payload, key }: Message): Fields => ({
  a: address,
  p: payload,
  ...(key !== "" && { t: key }),
});

/** Commands that the test itself sends. */
const OURS: ReadonlySet<string> = new Set(["info", "config"]);

/** An entry of an existing stream. */
const before: Fields = { a: "somewhere", p: "before" };

const [back, later] = [retryFor(message("r", 500), "workers", 3), retryFor(far, "w", 1)];
const cameBack: Fields = { a: message("r", 500).address, p: "r", n: "3", g: "workers" };

const forms = [
  { name: "transfer", order: "addresses", element: asAddress, isExact: false },
  { name: "transfer", order: "members", element: asMember, isExact: true },
  { name: "sweep", order: "addresses", element: asAddress, isExact: false },
  { name: "sweep", order: "members", element: asMember, isExact: true },
] as const;

/** Moves in a queue whose insertion order holds addresses. */
const move = (queue: Moves, script: typeof transfer.stream, options?: MoveOptions) =>
  moveAs("addresses", queue, script, options);

interface MoveOptions {
  readonly limit?: number;
  readonly claim?: number;
  readonly grace?: number;
  readonly makes?: number;
}

async function moveAs(
  elementsAre: Elements,
  { redis, keys }: Moves,
  script: typeof transfer.stream,
  { limit = 100, claim = 1, grace = 0, makes = 1 }: MoveOptions = {},
): Promise<Pick<TransferReply, "moved" | "wentInto" | "quarantined" | "next" | "hasListed">> {
  const reply = await run(redis, script, keys, {
    limit,
    grace,
    claim,
    task: "me",
    known: 0,
    elementsAre,
    makes,
    mark: 0,
  });
  const { moved, wentInto, quarantined, next, hasListed } = reply;
  return { moved, wentInto, quarantined, next, hasListed };
}

/** Leaves room for exactly `count` entries: ids cannot grow beyond the greatest. */
async function leaveRoomFor(count: number, { redis, keys }: Moves): Promise<void> {
  const last = 2n ** 64n - 1n;
  const id = `${last}-${last - BigInt(count)}`;
  await redis.xadd(keys.stream, id, ...Object.entries(before).flat());
}

describe.each(forms)("$name to a stream, a LIST of $order", ({ name, order, element, isExact }) => {
  const script = { transfer, sweep }[name];
  const toStream = script.stream;
  /** What a sweep also leaves, if the LIST holds messages. */
  const found = name === "sweep" ? { listed: "1" } : {};

  test.each([
    { form: "stream", script: toStream },
    { form: "list", script: script.list },
  ])("what is due becomes entries; form $form", async ({ script: moving }) => {
    const queue = await newMoves();
    await queue.seed({
      timeouts: [a.delayed, b.delayed, far.delayed, further.delayed],
      order: [far, b, a, further].map(element),
      businessKeys: { "key of b": indexEntry(b), "key of g": indexEntry(further) },
      stream: [before],
    });
    expect(await moveAs(order, queue, moving)).toEqual({
      moved: 2,
      wentInto: "stream",
      quarantined: 0,
      next: FAR,
      hasListed: false,
    });
    expect(await queue.snapshot()).toEqual({
      timeouts: [far.delayed, further.delayed],
      order: (isExact ? [far, further] : [far, b, a, further]).map(element),
      businessKeys: { "key of g": indexEntry(further) },
      stream: [before, entry(a), entry(b)],
      mover: "me",
    });
  });

  test("more than the first look shows, in the order of their deadlines, up to the limit", async () => {
    const many = Array.from("abcdefg", (letter, i) => message(letter, 1000 + i));
    for (const moving of [toStream, script.list]) {
      const queue = await newMoves();
      await queue.seed({
        timeouts: many.toReversed().map(({ delayed }) => delayed),
        order: many.map(element),
        stream: [before],
      });
      expect(await moveAs(order, queue, moving, { limit: 6 })).toMatchObject({
        moved: 6,
        next: 1006,
      });
      const { stream } = await queue.snapshot();
      expect(stream).toEqual([before, ...many.slice(0, 6).map(entry)]);
    }
  });

  test("a missing stream is created, but not by a process that knows only the plain queue", async () => {
    const queue = await newMoves();
    await queue.seed({ timeouts: [a.delayed, far.delayed], order: [a, far].map(element) });
    expect(await moveAs(order, queue, toStream)).toMatchObject({ moved: 1, wentInto: "stream" });
    expect(await queue.snapshot()).toMatchObject({ stream: [entry(a)] });

    const plain = await newMoves();
    await plain.seed({ timeouts: [a.delayed, far.delayed], order: [a, far].map(element) });
    const reply = await moveAs(order, plain, script.list);
    expect(reply).toMatchObject({ moved: 1, wentInto: "list", hasListed: false });
    expect(await plain.snapshot()).toEqual({
      timeouts: [far.delayed],
      order: (isExact ? [far] : [a, far]).map(element),
      ready: ["a"],
      ...found,
      mover: "me",
    });
  });

  test("nothing is due: the earlier of both heads is the next deadline", async () => {
    const queue = await newMoves();
    const seeded = {
      timeouts: [far.delayed],
      order: [element(far)],
      ready: ["pushed by another"],
      retries: [[later.name, FAR - 1]] as const,
      retrying: { [later.name]: later.value },
    };
    await queue.seed(seeded);
    expect(await moveAs(order, queue, toStream)).toEqual({
      moved: 0,
      wentInto: undefined,
      quarantined: 0,
      next: FAR - 1,
      hasListed: name === "sweep",
    });
    expect(await moveAs(order, queue, script.list)).toMatchObject({ next: FAR, hasListed: false });
    expect(await queue.snapshot()).toEqual({ ...seeded, ...found });
    await queue.redis.zadd(queue.keys.retries, FAR + 1, bytes(later.name));
    expect(await moveAs(order, queue, toStream)).toMatchObject({ next: FAR });
    await queue.redis.del(queue.keys.timeouts);
    expect(await moveAs(order, queue, toStream)).toMatchObject({ next: FAR + 1 });
    await queue.redis.del(queue.keys.retries);
    expect(await moveAs(order, queue, toStream)).toMatchObject({ next: Infinity });
  });

  test("addresses are made from ids of any length, and any score", async () => {
    const queue = await newMoves();
    const addresses: Bytes[] = [];
    for (const score of [-Infinity, -1.5, 0, 1000.5, 2000]) {
      for (const id of ["", "java's id", "x".repeat(255)].map((text) => Buffer.from(text))) {
        const member = packMember(id, Buffer.from("p"), "key");
        await queue.redis.zadd(queue.keys.timeouts, score, member);
        await moveAs(order, queue, toStream);
        addresses.push(packAddress(score, id).toString("latin1"));
      }
    }
    // From Redisson before 3.21.1.
    const old = Buffer.concat([
      Buffer.from("old id: "),
      packMember(Buffer.alloc(0), Buffer.from("p")).subarray(1),
    ]);
    await queue.redis.zadd(queue.keys.timeouts, 2000, old);
    await moveAs(order, queue, toStream);
    expect(await queue.snapshot()).toEqual({
      stream: [
        ...addresses.map((address) => ({ a: address, p: "p", t: "key" })),
        { a: packAddress(2000, Buffer.from("old id: ")).toString("latin1"), p: "p" },
      ],
      mover: "me",
    });
  });

  test("unreadable members go to the quarantine", async () => {
    const queue = await newMoves();
    await queue.seed({
      timeouts: [[poison, 500], a.delayed, far.delayed],
      order: [poison, element(a), element(far)],
    });
    expect(await moveAs(order, queue, toStream)).toMatchObject({
      moved: 1,
      quarantined: 1,
      next: FAR,
    });
    expect(await queue.snapshot()).toEqual({
      timeouts: [far.delayed],
      order: isExact ? [element(far)] : [poison, element(a), element(far)],
      stream: [entry(a)],
      unreadable: [poison],
      mover: "me",
    });
  });

  test.each([
    { form: "stream", script: toStream },
    { form: "list", script: script.list },
  ])(
    "the third is refused: the two before it have gone; form $form",
    async ({ script: moving }) => {
      const queue = await newMoves();
      await leaveRoomFor(2, queue);
      await queue.seed({
        timeouts: [a.delayed, b.delayed, c.delayed, far.delayed],
        order: [a, b, c, far].map(element),
        businessKeys: { "key of b": indexEntry(b) },
      });
      expect(await moveAs(order, queue, moving)).toMatchObject({
        moved: 2,
        wentInto: "stream",
        next: 3000,
      });
      const rest = {
        timeouts: [c.delayed, far.delayed],
        order: (isExact ? [c, far] : [a, b, c, far]).map(element),
        // It points to no message.
        businessKeys: { "key of b": indexEntry(b) },
        stream: [before, entry(a), entry(b)],
        mover: "me",
      };
      expect(await queue.snapshot()).toEqual(rest);
      await expect(moveAs(order, queue, moving)).rejects.toThrow("last possible ID");
      expect(await queue.snapshot()).toEqual(rest);
    },
  );

  test.each([
    { form: "stream", script: toStream },
    { form: "list", script: script.list },
  ])("the first is refused: nothing has changed; form $form", async ({ script: moving }) => {
    const queue = await newMoves();
    const seeded = {
      timeouts: [a.delayed, far.delayed],
      order: [a, far].map(element),
      retries: [[back.name, 1000]] as const,
      retrying: { [back.name]: back.value },
    };
    await queue.seed(seeded);
    await queue.redis.set(queue.keys.stream, "no stream");
    await expect(moveAs(order, queue, moving)).rejects.toThrow("WRONGTYPE");
    expect(await queue.snapshot()).toEqual(seeded);
  });

  test("due retries come back to their group, behind the messages", async () => {
    const queue = await newMoves();
    const trailed = retryFor(message("t", 600), "others", 0, "the key");
    await queue.seed({
      timeouts: [a.delayed, far.delayed],
      order: [a, far].map(element),
      ready: ["pushed by another"],
      stream: [before],
      retries: [
        [back.name, 1000],
        [trailed.name, 1001],
        [later.name, FAR - 1],
      ],
      retrying: {
        [back.name]: back.value,
        [trailed.name]: trailed.value,
        [later.name]: later.value,
      },
    });
    expect(await moveAs(order, queue, toStream)).toEqual({
      moved: 3,
      wentInto: "stream",
      quarantined: 0,
      next: FAR - 1,
      hasListed: name === "sweep",
    });
    expect(await queue.snapshot()).toEqual({
      timeouts: [far.delayed],
      order: (isExact ? [far] : [a, far]).map(element),
      ready: ["pushed by another"],
      ...found,
      stream: [
        before,
        entry(a),
        cameBack,
        { a: message("t", 600).address, p: "t", t: "the key", g: "others" },
      ],
      retries: [[later.name, FAR - 1]],
      retrying: { [later.name]: later.value },
      mover: "me",
    });
  });

  test("only retries are due; more than the first look shows, up to the limit", async () => {
    const queue = await newMoves();
    const messages = Array.from("abcdefg", (letter, i) => message(letter, 1000 + i));
    const all = messages.map((each) => retryFor(each, "w", 1));
    await queue.seed({
      timeouts: [far.delayed],
      order: [element(far)],
      retries: all.map(({ name: retry }, i) => [retry, 1000 + i]),
      retrying: Object.fromEntries(all.map(({ name: retry, value }) => [retry, value])),
    });
    // Not overdue by that much.
    expect(await moveAs(order, queue, toStream, { grace: Date.now() })).toMatchObject({
      moved: 0,
      next: 1000,
    });
    expect(await moveAs(order, queue, toStream, { limit: 6 })).toMatchObject({
      moved: 6,
      next: 1006,
    });
    const { stream, retries } = await queue.snapshot();
    expect(stream).toEqual(
      messages.slice(0, 6).map((each) => ({ ...entry(each), n: "1", g: "w" })),
    );
    expect(retries).toEqual([[all[6]?.name, 1006]]);
    expect(await moveAs(order, queue, toStream)).toMatchObject({ moved: 1, next: FAR });
    expect(await queue.snapshot()).toMatchObject({ timeouts: [far.delayed], mover: "me" });
  });

  test("the reply says since when the oldest was due, retry or message", async () => {
    const queue = await newMoves();
    await queue.seed({
      timeouts: [a.delayed],
      retries: [[back.name, 900]],
      retrying: { [back.name]: back.value },
    });
    const args = {
      limit: 100,
      grace: 0,
      claim: 0,
      task: "me",
      known: 0,
      makes: 1,
      mark: 0,
      elementsAre: order,
    };
    expect(await run(queue.redis, toStream, queue.keys, args)).toMatchObject({
      moved: 2,
      dueSince: 900,
    });
  });

  test("a process that knows only the plain queue leaves the retries alone", async () => {
    const queue = await newMoves();
    const withRetry = {
      retries: [[back.name, 1000]] as const,
      retrying: { [back.name]: back.value },
    };
    await queue.seed({
      timeouts: [a.delayed],
      order: [element(a)],
      stream: [before],
      ...withRetry,
    });
    expect(await moveAs(order, queue, script.list)).toMatchObject({ moved: 1, next: Infinity });
    expect(await queue.snapshot()).toEqual({
      stream: [before, entry(a)],
      ...(order === "addresses" && { order: [element(a)] }),
      ...withRetry,
      mover: "me",
    });
  });

  test("retries without a message are dropped, and their bytes are kept", async () => {
    const queue = await newMoves();
    const names: Bytes[] = ["no value", "", "\u0002x", `\u0007${"x".repeat(7)}w`, back.name];
    await queue.seed({
      timeouts: [far.delayed],
      order: [element(far)],
      retries: [...names.map((retry) => [retry, 1000] as const), [later.name, 1000]],
      retrying: {
        "": retryFor(a, "w", 1).value,
        [names[3] as Bytes]: retryFor(b, "w", 1).value,
        [back.name]: back.value.slice(0, -1),
        [later.name]: later.value,
      },
    });
    expect(await moveAs(order, queue, toStream)).toMatchObject({
      moved: 1,
      quarantined: 3,
      next: FAR,
    });
    const { unreadable = [], ...rest } = await queue.snapshot();
    expect(unreadable.toSorted()).toEqual(
      [retryFor(a, "w", 1).value, retryFor(b, "w", 1).value, back.value.slice(0, -1)].toSorted(),
    );
    expect(rest).toEqual({
      timeouts: [far.delayed],
      order: [element(far)],
      stream: [{ a: far.address, p: "f", n: "1", g: "w" }],
      mover: "me",
    });
  });

  test("a refused retry stays, and is reported by the next run", async () => {
    const queue = await newMoves();
    await leaveRoomFor(2, queue);
    const second = retryFor(message("s", 600), "w", 1);
    await queue.seed({
      timeouts: [a.delayed, far.delayed],
      order: [a, far].map(element),
      retries: [
        [back.name, 1000],
        [second.name, 1001],
      ],
      retrying: { [back.name]: back.value, [second.name]: second.value },
    });
    expect(await moveAs(order, queue, toStream)).toMatchObject({ moved: 2, next: 1001 });
    await expect(moveAs(order, queue, toStream)).rejects.toThrow("last possible ID");
    expect(await queue.snapshot()).toEqual({
      timeouts: [far.delayed],
      order: (isExact ? [far] : [a, far]).map(element),
      stream: [before, entry(a), cameBack],
      retries: [[second.name, 1001]],
      retrying: { [second.name]: second.value },
      mover: "me",
    });
  });
});

test("keys of another type are refused before anything changes", async () => {
  for (const key of ["retries", "retrying", "businessKeys"] as const) {
    const queue = await newMoves();
    const seeded = { timeouts: [a.delayed, b.delayed, far.delayed] };
    await queue.seed(seeded);
    if (key === "retrying") await queue.redis.zadd(queue.keys.retries, 1, back.name);
    await queue.redis.set(queue.keys[key], "neither");
    await expect(move(queue, transfer.stream)).rejects.toThrow("WRONGTYPE");
    expect(await queue.redis.zcard(queue.keys.timeouts)).toBe(3);
    expect(await queue.redis.exists(queue.keys.stream)).toBe(0);
  }
});

test("a client that may not drop retries brings none back, and moves nothing", async () => {
  const server = await startOwnServer();
  for (const command of ["zrem", "hdel"]) {
    const queue = await newMoves(server.url);
    const seeded = {
      timeouts: [a.delayed, far.delayed],
      retries: [[back.name, 1000]] as const,
      retrying: { [back.name]: back.value },
    };
    await queue.seed(seeded);
    await queue.redis.acl("SETUSER", "default", `-${command}`);
    await expect(move(queue, transfer.stream)).rejects.toThrow();
    await queue.redis.acl("SETUSER", "default", `+${command}`);
    expect(await queue.snapshot()).toEqual(seeded);
  }
});

test("with a full memory messages and retries still become entries", async () => {
  const server = await startOwnServer();
  const queue = await newMoves(server.url);
  const full = () => queue.redis.config("SET", "maxmemory-policy", "noeviction", "maxmemory", "1");
  for (const script of [transfer.stream, transfer.list]) {
    await queue.redis.config("SET", "maxmemory", "0");
    await queue.seed({ timeouts: [a.delayed, b.delayed, far.delayed], stream: [before] });
    await full();
    // Without a claim, the script removes nothing before it adds the first entry.
    expect(await move(queue, script, { claim: 0 })).toMatchObject({ moved: 2, wentInto: "stream" });
    await queue.redis.del(queue.keys.stream);
  }
  await queue.redis.config("SET", "maxmemory", "0");
  await queue.seed({ retries: [[back.name, 1000]], retrying: { [back.name]: back.value } });
  await full();
  expect(await move(queue, transfer.stream, { claim: 0 })).toMatchObject({ moved: 1 });
  await queue.redis.config("SET", "maxmemory", "0");
  expect(await queue.snapshot()).toEqual({ timeouts: [far.delayed], stream: [cameBack] });
});

test("a plain queue pays one EXISTS for reliable ones, where something moves", async () => {
  const server = await startOwnServer();
  const queue = await newMoves(server.url);
  /** How often a transfer calls each command. */
  const count = async (): Promise<Record<string, number>> => {
    await queue.redis.config("RESETSTAT");
    await move(queue, transfer.list);
    const stats = await queue.redis.info("commandstats");
    const counts = [...stats.matchAll(/cmdstat_(\w+):calls=(\d+)/g)].flatMap(
      ([, command = "", calls]) => (OURS.has(command) ? [] : [[command, Number(calls)] as const]),
    );
    const { evalsha, ...called } = Object.fromEntries(counts);
    expect(evalsha).toBe(1);
    return called;
  };
  await move(queue, transfer.list);
  await queue.seed({ timeouts: [far.delayed] });
  expect(await count()).toEqual({ time: 1, zrange: 1, get: 1 });
  await queue.seed({ timeouts: [a.delayed, c.delayed] });
  const one = { time: 1, zrange: 1, exists: 1, zremrangebyrank: 2, rpush: 1, set: 1 };
  expect(await count()).toEqual(one);
  const many = Array.from("hijklmn", (letter) => message(letter, 1000));
  await queue.seed({ timeouts: many.map(({ delayed }) => delayed) });
  expect(await count()).toEqual({ ...one, zrange: 2, zrangebyscore: 1 });
});

describe.each(forms)(
  "$name where the stream has gone, a LIST of $order",
  ({ name, order, element }) => {
    const script = { transfer, sweep }[name].stream;

    test("without makes, it fills the LIST again, and leaves retries alone", async () => {
      const queue = await newMoves();
      await queue.seed({
        timeouts: [a.delayed, far.delayed],
        order: [a, far].map(element),
        retries: [[back.name, 500]],
        retrying: { [back.name]: back.value },
      });
      const reply = { moved: 1, wentInto: "list", quarantined: 0, next: FAR, hasListed: false };
      expect(await moveAs(order, queue, script, { makes: 0 })).toEqual(reply);
      expect(await queue.snapshot()).toMatchObject({
        ready: ["a"],
        retries: [[back.name, 500]],
        mover: "me",
      });
      // Only the retry is due now, and it must not look due for ever.
      expect(await moveAs(order, queue, script, { makes: 0 })).toEqual({ ...reply, moved: 0 });
      expect((await queue.snapshot()).stream).toBeUndefined();
    });

    test("without makes, it fills the stream as long as there is one", async () => {
      const queue = await newMoves();
      await queue.seed({ timeouts: [a.delayed], order: [element(a)], stream: [before] });
      expect(await moveAs(order, queue, script, { makes: 0 })).toMatchObject({
        moved: 1,
        wentInto: "stream",
      });
      expect(await queue.snapshot()).toMatchObject({ stream: [before, entry(a)] });
    });
  },
);
