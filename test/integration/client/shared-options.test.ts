/** What the handles of one queue in one client share: a later one takes over what it leaves out. */
import { beforeEach, describe, expect, test } from "vitest";
import type { Codec } from "../../../src/index.ts";
import { uniqueName } from "../../helpers/redis.ts";
import { newLine } from "../../helpers/delayline.ts";

let name: string;
beforeEach(() => {
  name = uniqueName();
});

const MUST = "must be the same for all its handles in a client: the first one has";
const WAY_OUT = "give it to the first one, or leave it out here";

const newCodec = (): Codec => ({
  name: "own",
  encode: (value) => Buffer.from(String(value)),
  decode: (bytes) => Buffer.from(bytes).toString(),
});

describe("what a handle leaves out", () => {
  test("is the first handle's codec", async () => {
    const line = newLine();
    await line.getDelayedQueue(name, { codec: "json" }).offer({ number: 5 }, 0);
    expect(await line.getBlockingQueue(name).take()).toEqual({ number: 5 });
  });

  test("is the first handle's interop", () => {
    const line = newLine({ transfer: false });
    line.getDelayedQueue(name, { interop: "redisson" });
    line.getBlockingQueue(name);
    line.getReliableQueue(name);
  });

  test("is what the first handle of the group has given", async () => {
    const line = newLine();
    line.getReliableQueue(name, { leaseTimeout: 5000, maxAttempts: 1 });
    const queue = line.getReliableQueue(name);
    await queue.offer("once", 0);
    const delivery = await queue.take();
    await delivery.nack({ reason: "the only attempt" });
    expect(await queue.deadLetters.size()).toBe(1);
    // Another group has options of its own.
    line.getReliableQueue(name, { group: "audit", leaseTimeout: 6000 });
  });

  test("is the retry that an earlier handle of the group has given", async () => {
    const line = newLine();
    line.getReliableQueue(name);
    line.getReliableQueue(name, { retry: [3_600_000] });
    const queue = line.getReliableQueue(name);
    await queue.offer("later", 0);
    await (await queue.take()).nack();
    const at = (await queue.nextDeadline()) ?? 0;
    expect(at - (await line.serverTime())).toBeGreaterThan(3_000_000);
  });

  test("is exclusive consumption", async () => {
    const line = newLine();
    line.getReliableQueue(name, { exclusive: true, partitions: 1 });
    await expect(line.getReliableQueue(name).take()).rejects.toThrow(/exclusive/);
  });

  test("is not the transfer: it is on if any handle says so, in whatever order", async () => {
    const off = newLine();
    await off.getDelayedQueue(name, { transfer: false }).offer("first", 0);
    expect(await off.getBlockingQueue(name).take()).toBe("first");

    const on = newLine();
    const ready = on.getBlockingQueue(name);
    await on.getDelayedQueue(name, { transfer: false }).offer("second", 0);
    expect(await ready.take()).toBe("second");
  });

  test("is the client's, if no handle has given it", async () => {
    const line = newLine({ codec: "json" });
    await line.getDelayedQueue(name, { maxPayloadBytes: 100 }).offer(5, 0);
    expect(await line.getBlockingQueue(name, { codec: "json" }).take()).toBe(5);
    await expect(line.getDelayedQueue(name).offer("x".repeat(200), 0)).rejects.toThrow(
      "maxPayloadBytes is 100",
    );
  });

  test("is forgotten once the queue is closed", async () => {
    const line = newLine();
    await line.getDelayedQueue(name, { codec: "json" }).offer(5, 60_000);
    await line.close();
    const again = newLine();
    const read = await again.getDelayedQueue(name, { codec: "string" }).insertionOrder.peek();
    expect(read).toBe("5");
  });
});

describe("a handle is refused", () => {
  test.each<[string, object, object, string]>([
    ["codec", { codec: "json" }, { codec: "string" }, '"json", got "string"'],
    // Nobody has given it, but the first handle may have been used.
    ["codec", {}, { codec: "json" }, '"msgpack", got "json"'],
    ["interop", { interop: "redisson" }, { interop: "none" }, '"redisson", got "none"'],
    ["interop", {}, { interop: "redisson" }, '"none", got "redisson"'],
  ])("for another %s: %j, then %j", (option, first, second, values) => {
    const error = new TypeError(`${option} of queue "${name}" ${MUST} ${values}; ${WAY_OUT}`);
    const line = newLine({ transfer: false });
    line.getDelayedQueue(name, first);
    expect(() => line.getDelayedQueue(name, second)).toThrow(error);
    expect(() => line.getBlockingQueue(name, second)).toThrow(error);
    expect(() => line.getReliableQueue(name, second)).toThrow(error);
    // It has changed nothing.
    line.getDelayedQueue(name, first);
  });

  test("for another codec object of the same name", () => {
    const line = newLine({ transfer: false });
    const first = newCodec();
    line.getDelayedQueue(name, { codec: first });
    line.getBlockingQueue(name, { codec: first });
    expect(() => line.getBlockingQueue(name, { codec: newCodec() })).toThrow(
      `codec of queue "${name}" ${MUST} "own", got "another object of that name"; ${WAY_OUT}`,
    );
  });

  test.each<[string, object, object, string]>([
    ["leaseTimeout", { leaseTimeout: 5000 }, { leaseTimeout: 6000 }, "5000, got 6000"],
    ["leaseTimeout", {}, { leaseTimeout: 6000 }, "30000, got 6000"],
    ["maxAttempts", { maxAttempts: 3 }, { maxAttempts: 4 }, "3, got 4"],
    ["exclusive", { exclusive: true, partitions: 1 }, { exclusive: false }, "true, got false"],
  ])("for another %s of its group: %j, then %j", (option, first, second, values) => {
    const line = newLine({ transfer: false });
    line.getReliableQueue(name, { group: "billing", ...first });
    const of = `${option} of group "billing" of queue "${name}"`;
    expect(() => line.getReliableQueue(name, { group: "billing", ...second })).toThrow(
      new TypeError(`${of} ${MUST} ${values}; ${WAY_OUT}`),
    );
  });

  test("and then opens nothing", () => {
    const line = newLine({ transfer: false });
    line.getDelayedQueue(name, { codec: "json" });
    expect(() => line.getReliableQueue(name, { group: "g", codec: "string" })).toThrow(TypeError);
    line.getReliableQueue(name, { group: "g", leaseTimeout: 500 });
  });
});

test("an ordinary queue may be given partitions by a later handle", async () => {
  const line = newLine();
  line.getDelayedQueue(name);
  await line.getDelayedQueue(name, { partitions: 2 }).offer("x", 60_000);
  expect(await line.partitions(name)).toHaveLength(2);
  await line.setPartitions(name, 3);
  line.getDelayedQueue(name, { partitions: 2 });
});
