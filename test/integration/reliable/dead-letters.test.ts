import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { inspect } from "node:util";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { Delay } from "../../../src/time/delay.ts";
import { ClosedError, RedisError, type MessageId } from "../../../src/index.ts";
import type { ScriptEvent } from "../../../src/lua/script.ts";
import { queueKeys, type QueueKeys } from "../../../src/queue/keys.ts";
import { createId, messageIdAt, packAddress } from "../../../src/queue/message/message.ts";
import { queueSettings } from "../../../src/queue/options.ts";
import { Payloads } from "../../../src/queue/payloads.ts";
import { packTrailer } from "../../../src/queue/message/trailer.ts";
import { DeadLetters } from "../../../src/handles/dead-letters.ts";
import { collect } from "../../helpers/collect.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";
import { newReliableParts } from "../../helpers/reliable.ts";

let name: string;
let keys: QueueKeys;
let redis: ReturnType<typeof newRedis>;

beforeEach(async () => {
  name = uniqueName("dead");
  keys = queueKeys(name);
  redis = newRedis();
  for (const group of ["billing", "mail"]) {
    await redis.xgroup("CREATE", keys.stream, group, "$", "MKSTREAM");
  }
});

/** One process and its handle of the queue. */
function open() {
  const one = newReliableParts(name);
  const payloads = new Payloads<unknown>(one.queue, queueSettings({ codec: "json" }));
  return {
    ...one,
    letters: new DeadLetters(one.parts, payloads),
  };
}

interface Death {
  readonly payload?: string;
  readonly trailer?: Buffer;
  readonly group?: string;
  readonly reason?: string;
}

/** A message as it is stored in Redis. */
const newAddress = (stamp = 1) => packAddress(1000, createId(stamp));

/** Makes a message a dead letter, and returns its id. */
async function die(
  address: Buffer,
  { payload = '"payload"', trailer, group = "billing", reason = "too many deliveries" }: Death = {},
): Promise<MessageId> {
  const more = trailer === undefined ? [] : ["t", trailer];
  const fields = ["a", address, "p", payload, ...more, "n", "5", "g", group, "r", reason];
  await redis.xadd(keys.dead, "*", ...fields);
  return messageIdAt(address);
}

const keyed = (key: string) => ({ trailer: packTrailer({ key }) });

async function dieMany(count: number): Promise<MessageId[]> {
  const addresses = Array.from({ length: count }, (_, i) => newAddress(i));
  return await Promise.all(addresses.map((address, i) => die(address, { payload: String(i) })));
}

/** The names of the retries. */
const retryCount = async () => await redis.zcard(keys.retries);

test("reads 250 letters, oldest first, and leaves them", async () => {
  const { letters } = open();
  expect(await letters.size()).toBe(0);
  expect(await collect(letters)).toEqual([]);
  const ids = await dieMany(250);
  expect(await letters.size()).toBe(250);
  const found = await collect(letters);
  expect(found.map(({ id }) => id)).toEqual(ids);
  expect(found.map(({ payload }) => payload)).toEqual(ids.map((_, i) => i));
  expect(await letters.size()).toBe(250);
  expect(await letters.clear()).toBe(250);
  expect(await letters.size()).toBe(0);
  expect(await letters.clear()).toBe(0);
});

test("a letter has everything known of its message", async () => {
  const { letters, errors } = open();
  const headers = { traceparent: "00-1" };
  const failures = [{ attempt: 5, at: 1_760_000_000_123, reason: "busy" }];
  const trailer = packTrailer({ key: "order:42", headers, failures });
  const before = Date.now();
  const first = await die(newAddress(), { payload: '{"a":1}', trailer, group: "mail" });
  const second = await die(newAddress(), { payload: "{ no json" });
  const [letter, unreadable, ...others] = await collect(letters);
  const common = { attempt: 5, reason: "too many deliveries", diedAt: expect.any(Date) as Date };
  expect(letter).toEqual({
    ...common,
    id: first,
    payload: { a: 1 },
    bytes: Buffer.from('{"a":1}'),
    key: "order:42",
    headers,
    failures,
    group: "mail",
  });
  expect(Math.abs(Number(letter?.diedAt) - before)).toBeLessThan(60_000);
  expect(unreadable).toEqual({
    ...common,
    id: second,
    payload: undefined,
    bytes: Buffer.from("{ no json"),
    key: undefined,
    headers: undefined,
    failures: [],
    group: "billing",
  });
  expect(others).toEqual([]);
  expect(errors).toEqual([]);
});

test("large letters come a few at a time", async () => {
  const { letters } = open();
  const payload = JSON.stringify("x".repeat(100_000));
  for (let i = 0; i < 25; i++) await die(newAddress(), { payload });
  const rows = runsOf("dead-page");
  expect((await collect(letters)).length).toBe(25);
  expect(rows()).toBe(13);
});

test("redrives all of 250 letters: they are retrying, and nothing else is", async () => {
  const { letters, messages } = open();
  const ids = await dieMany(250);
  expect(await letters.redrive("all", { delay: 60_000 })).toBe(250);
  expect(await letters.size()).toBe(0);
  expect(await messages.size()).toBe(250);
  const found = await messages.get(ids[249] as MessageId);
  expect(found).toMatchObject({ id: ids[249], payload: Buffer.from("249") });
  expect(found?.deadline).toBeGreaterThan(Date.now() + 50_000);
  expect(await letters.redrive("all")).toBe(0);
});

test("redrives the last of 250 letters by its id; the others stay", async () => {
  const { letters, messages } = open();
  const ids = await dieMany(250);
  const last = ids[249] as MessageId;
  expect(await letters.redrive(last)).toBe(1);
  expect(await letters.redrive(last)).toBe(0);
  expect(await letters.size()).toBe(249);
  expect((await messages.get(last))?.deadline).toBeLessThanOrEqual(Date.now() + 1000);
});

test("removes the last of 250 letters; nobody can redrive it then", async () => {
  const { letters } = open();
  const ids = await dieMany(250);
  const last = ids[249] as MessageId;
  expect(await letters.remove(last)).toBe(true);
  expect(await letters.remove(last)).toBe(false);
  expect(await letters.redrive(last)).toBe(0);
  expect(await letters.size()).toBe(249);
});

test("a message that dies again during a redrive of all stays for the next call", async () => {
  const { letters } = open();
  await dieMany(250);
  const dying: Promise<unknown>[] = [];
  const steps = runsOf("redrive", () => dying.push(dieMany(20)));
  expect(await letters.redrive("all")).toBe(250);
  await Promise.all(dying);
  expect(steps()).toBe(13);
  expect(await letters.size()).toBe(260);
});

test("a message that died in two groups is redriven to these two only", async () => {
  const { letters, messages } = open();
  await redis.xgroup("CREATE", keys.stream, "third", "$");
  const address = newAddress();
  const id = await die(address);
  await die(newAddress());
  await die(address, { group: "mail" });
  expect(await letters.redrive(id, { delay: 60_000 })).toBe(2);
  const names = await redis.zrange(keys.retries, "0", "-1");
  expect(names.map((text) => text.replace(/.*(billing|mail|third)$/s, "$1"))).toEqual([
    "billing",
    "mail",
  ]);
  expect(await letters.size()).toBe(1);
  expect(await messages.cancel(id)).toBe(true);
  expect(await retryCount()).toBe(0);
});

test("a message that died in two groups is removed from both", async () => {
  const { letters } = open();
  const address = newAddress();
  const id = await die(address);
  await die(address, { group: "mail" });
  expect(await letters.remove(id)).toBe(true);
  expect(await letters.size()).toBe(0);
});

test("a redriven message keeps its key and headers, and holds the key", async () => {
  const { letters, messages } = open();
  const headers = { a: "1" };
  const id = await die(newAddress(), { trailer: packTrailer({ key: "order:42", headers }) });
  expect(await letters.redrive(id, { delay: 60_000 })).toBe(1);
  const found = await messages.get(id);
  expect(found).toMatchObject({ id, key: "order:42", headers });
  expect(await messages.get("order:42")).toEqual(found);
  const payload = Buffer.from("1");
  const due = { delay: new Delay(60_000) };
  const offered = await messages.offer({ payload, due, key: "order:42", rule: "ignore" });
  expect(offered).toEqual({ id, deadline: found?.deadline, outcome: "existing" });
  expect(await messages.size()).toBe(1);
});

test("a foreign letter is listed, is not redriven, and can be removed", async () => {
  const { letters } = open();
  await redis.xadd(keys.dead, "5-1", "some", "thing", "p", "1");
  await redis.xadd(keys.dead, "6-0", "a", "\u0000", "n", "many");
  await redis.xadd(keys.dead, "99999999999999999-0", "x", "y");
  const found = await collect(letters);
  expect(found.map(({ id, reason, group }) => [id, reason, group])).toEqual([
    ["5-0000000000000001", "unreadable", ""],
    ["6-0000000000000000", "unreadable", ""],
    [expect.any(String), "unreadable", ""],
  ]);
  expect(found.map(({ bytes }) => String(bytes))).toEqual(["1", "a\u0000nmany", "xy"]);
  expect(found.map(({ attempt }) => attempt)).toEqual([0, 0, 0]);
  for (const { diedAt } of found) expect(diedAt.getTime()).not.toBeNaN();
  expect(await letters.redrive("all")).toBe(0);
  expect(await letters.redrive(found[0]?.id as MessageId)).toBe(0);
  expect(await letters.size()).toBe(3);
  expect(await letters.remove(found[0]?.id as MessageId)).toBe(true);
  expect((await collect(letters)).map(({ reason }) => reason)).toEqual([
    "unreadable",
    "unreadable",
  ]);
  expect(await letters.clear()).toBe(2);
});

test("while one client redrives and another removes, each letter is in one place", async () => {
  const [one, other] = [open(), open()];
  const ids = await dieMany(250);
  const removed: MessageId[] = [];
  let redriving: Promise<number> | undefined;
  // From the end: the other client comes to these last.
  for (const [i, id] of ids.toReversed().entries()) {
    if (i === 5) redriving = one.letters.redrive("all", { delay: 60_000 });
    if (await other.letters.remove(id)) removed.push(id);
  }
  expect(removed.length).toBeGreaterThanOrEqual(5);
  expect(await redriving).toBe(250 - removed.length);
  expect(await one.letters.size()).toBe(0);
  const found = await Promise.all(ids.map((id) => one.messages.get(id)));
  const left = ids.filter((_, i) => found[i] === undefined);
  expect(left.toSorted()).toEqual(removed.toSorted());
});

test("with a key of another type the calls reject without a payload, and change nothing", async () => {
  const { letters } = open();
  await redis.set(keys.dead, "secret");
  const id = messageIdAt(newAddress());
  const calls = [
    () => letters.size(),
    () => collect(letters),
    () => letters.redrive("all"),
    () => letters.redrive(id),
    () => letters.remove(id),
    () => letters.clear(),
  ];
  for (const call of calls) {
    const error: unknown = await call().catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(RedisError);
    expect((error as RedisError).message).toMatch(/dead letters of queue ".*WRONGTYPE/);
    expect(inspect(error)).not.toContain("secret");
  }
  expect(await redis.get(keys.dead)).toBe("secret");
});

test("an aborted call rejects with the signal's reason", async () => {
  const { letters } = open();
  const id = await die(newAddress());
  const signal = AbortSignal.abort(new Error("enough"));
  for (const call of [
    () => letters.size({ signal }),
    () => letters.redrive(id, { signal }),
    () => letters.remove(id, { signal }),
    () => letters.clear({ signal }),
  ]) {
    await expect(call()).rejects.toThrow("enough");
  }
  expect(await letters.size()).toBe(1);
});

test("a closed queue refuses", async () => {
  const { letters, queue } = open();
  queue.close();
  for (const call of [
    () => letters.size(),
    () => letters.redrive("all"),
    () => letters.clear(),
    () => collect(letters),
  ]) {
    await expect(call()).rejects.toThrow(ClosedError);
  }
});

test("illegal arguments are refused, and nothing changes", async () => {
  const { letters } = open();
  const id = await die(newAddress());
  const bad: [call: () => Promise<unknown>, message: RegExp][] = [
    ...["ALL", "order:42", "", null, undefined, 7].map(
      (value): [() => Promise<unknown>, RegExp] => [
        () => letters.redrive(value as MessageId),
        /^id must be a message id \(<deadline>-<hex>\) or "all", got /,
      ],
    ),
    ...["all", "order:42", null, undefined].map((value): [() => Promise<unknown>, RegExp] => [
      () => letters.remove(value as MessageId),
      /^id must be a message id \(<deadline>-<hex>\), got /,
    ]),
    [() => letters.redrive(id, { delay: -1 }), /^delay must be between 0 and/],
    [() => letters.redrive(id, { delay: "5" as never }), /^delay must be a number of milli/],
    [
      () => letters.redrive(id, { dealy: 5 } as never),
      /^redrive option must be one of delay, dryRun, signal/,
    ],
    [() => letters.redrive({}), /^a filter must have a condition; to mean all letters, say "all"/],
    [() => letters.remove({ reason: undefined } as never), /^a filter must have a condition/],
    [() => letters.redrive({ raeson: "x" } as never), /^filter must be one of reason, .*reason/],
    [() => letters.redrive({ reason: 5 } as never), /^reason must be a string, got number/],
    [() => letters.redrive({ olderThan: -1 }), /^olderThan must be between 0 and/],
    [() => letters.redrive({ keys: 5 } as never), /^keys must be/],
    [() => letters.redrive("all", { dryRun: 1 } as never), /^dryRun must be a boolean, got number/],
    [() => letters.redrive(id, null as never), /^redrive options must be an object, got null/],
    [() => letters.redrive(id, { signal: 5 as never }), /^signal must be an AbortSignal/],
    [() => letters.remove(id, { delay: 5 } as never), /^call option must be one of signal/],
    [() => letters.size({ delay: 5 } as never), /^call option must be one of signal/],
    [() => letters.clear({ delay: 5 } as never), /^call option must be one of signal/],
  ];
  for (const [call, message] of bad) await expect(call()).rejects.toThrow(message);
  expect(await letters.size()).toBe(1);
  expect(await retryCount()).toBe(0);
});

/** Counts the runs of a script from here on. */
function runsOf(script: string, then = () => {}): () => number {
  let count = 0;
  const onRun = (run: unknown) => {
    const { script: ran, key } = run as ScriptEvent;
    if (ran !== script || key !== keys.dead) return;
    count += 1;
    then();
  };
  subscribe("delayline:script", onRun);
  onTestFinished(() => void unsubscribe("delayline:script", onRun));
  return () => count;
}

test("a filter chooses letters by reason, whole or folded, by group, age and keys; a dry run only counts", async () => {
  const { letters } = open();
  await die(newAddress(1), { ...keyed("order:1"), reason: "answered 503 after 3 s" });
  await die(newAddress(2), { ...keyed("order:2"), reason: "answered 503 after 12 s" });
  await die(newAddress(3), { ...keyed("mail:3"), reason: "answered 500 after 3 s" });
  await die(newAddress(4), { group: "mail", reason: "SMTP 550" });
  const folded = { reason: "answered 503 after # s" };
  for (const [filter, count] of [
    [folded, 2],
    [{ reason: "answered 503 after 12 s" }, 1],
    [{ group: "mail" }, 1],
    [{ prefix: "order:" }, 2],
    [{ keys: ["mail:3", "order:1", "none"] }, 2],
    [{ ...folded, keys: ["mail:3"] }, 0],
    [{ olderThan: 60_000 }, 0],
    [{ olderThan: 0, group: "billing" }, 3],
  ] as const) {
    expect(await letters.redrive(filter, { dryRun: true }), JSON.stringify(filter)).toBe(count);
    expect(await letters.remove(filter, { dryRun: true }), JSON.stringify(filter)).toBe(count);
  }
  expect(await letters.redrive("all", { dryRun: true })).toBe(4);
  expect([await letters.size(), await retryCount()]).toEqual([4, 0]);
  expect(await letters.redrive(folded, { delay: 60_000 })).toBe(2);
  expect([await letters.size(), await retryCount()]).toEqual([2, 2]);
  expect(await letters.redrive(folded)).toBe(0);
  expect(await letters.remove({ reason: "SMTP 550" })).toBe(1);
  expect(await letters.size()).toBe(1);
});
