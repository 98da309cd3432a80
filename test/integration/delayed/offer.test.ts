import type { Redis } from "ioredis";
import { beforeEach, describe, expect, test } from "vitest";
import {
  EncodeError,
  OfferError,
  OfferManyError,
  PayloadTooLargeError,
  type Codec,
  type DelayedQueue,
  type OfferResult,
} from "../../../src/index.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { offer as plainScript } from "../../../src/lua/delayed/offer.ts";
import { offerKeyed as keyedScript } from "../../../src/lua/delayed/offer-keyed.ts";
import { newLine } from "../../helpers/delayline.ts";
import { watchCommands } from "../../helpers/monitor.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";
import { serverTime } from "../../helpers/server-time.ts";

const MINUTE = 60_000;

let redis: Redis;
let name: string;
/** A queue whose messages nobody moves. */
let queue: DelayedQueue;

beforeEach(() => {
  redis = newRedis();
  name = uniqueName("offer");
  queue = newLine({ transfer: false }).getDelayedQueue(name);
});

const payloadsInRedis = async () => await queue.insertionOrder.readAll();

/** The scripts that ran on the queue, once Redis knows them all. */
async function watchScripts() {
  // The first run of a script takes two commands: EVALSHA, and EVAL.
  await queue.offer("to begin with", MINUTE);
  await queue.clear();
  const watched = await watchCommands(queueKeys(name).timeouts);
  return async () => (await watched()).filter(([command]) => /^eval/i.test(command ?? "")).length;
}

function* failing() {
  yield { payload: 1, delay: 1 };
  throw new Error("the source is dry");
}

describe("offer", () => {
  test("returns the message's id, its deadline, and that it was added", async () => {
    const result = await queue.offer({ order: 42 }, MINUTE);
    expect(result).toEqual({
      id: expect.stringMatching(/^\d{13}-[0-9a-f]{32}$/),
      deadline: expect.any(Number),
      outcome: "added",
    });
    expect(result.id.startsWith(`${result.deadline}-`)).toBe(true);
  });

  test.each([0.001, 0.5, 1, 1.25, 99.999, 1234.5678, MINUTE])(
    "counts %d ms from the server's clock, and never less",
    async (delay) => {
      await queue.offer("to begin with", MINUTE);
      for (let i = 0; i < 30; i++) {
        const before = await serverTime(redis);
        const { deadline } = await queue.offer("x", delay);
        const after = await serverTime(redis);
        // The clock's resolution is a thousandth of a millisecond.
        expect(deadline).toBeGreaterThan(before + delay - 0.001);
        expect(deadline).toBeLessThan(after + delay + 1);
        expect(Number.isInteger(deadline)).toBe(true);
      }
    },
  );

  test("with a delay of 0 is due at once, but is still delayed first", async () => {
    const { deadline } = await queue.offer("x", 0);
    expect(deadline).toBeLessThanOrEqual(await serverTime(redis));
    expect(await queue.size()).toBe(1);
    expect(await redis.llen(name)).toBe(0);

    const ready = newLine().getBlockingQueue(name);
    expect(await ready.take()).toBe("x");
    expect(await queue.size()).toBe(0);
  });

  test("delivers no message before its deadline, on the server's clock", async () => {
    const delayed = newLine().getDelayedQueue(name);
    await delayed.offer("to begin with", MINUTE);
    // How many are ready, and when, read as often as Redis replies.
    const look = async () => {
      const script = `local t = redis.call("TIME")
        return { redis.call("LLEN", KEYS[1]), t[1], t[2] }`;
      const [count, seconds, micros] = (await redis.eval(script, 1, name)) as [number, ...string[]];
      return { count, at: Number(seconds) * 1000 + Number(micros) / 1000 };
    };
    const before = await serverTime(redis);
    // Close together, so that a transfer for one always finds that the next is not yet due.
    const delays = Array.from({ length: 60 }, (_, i) => i * 1.75);
    const offered = await delayed.offerMany(delays.map((delay) => ({ payload: delay, delay })));
    const deadlines = offered.map(({ deadline }) => deadline);
    let seen = await look();
    while (seen.count < 60) {
      const { count, at } = (seen = await look());
      if (count > 0) {
        expect(at).toBeGreaterThanOrEqual(deadlines[count - 1] as number);
        expect(at).toBeGreaterThanOrEqual(before + (delays[count - 1] as number));
      }
    }
  });

  test("delivers in the order of the deadlines, whatever the order of the offers", async () => {
    const line = newLine();
    const delays = [90, 10, 50, 30, 70, 0];
    await line
      .getDelayedQueue<number>(name)
      .offerMany(delays.map((delay) => ({ payload: delay, delay })));
    const ready = line.getBlockingQueue<number>(name);
    const taken: number[] = [];
    while (taken.length < 6) taken.push(await ready.take());
    expect(taken).toEqual([0, 10, 30, 50, 70, 90]);
  });

  test("keeps the order of the offers where deadlines are equal", async () => {
    const date = new Date(1000);
    const payloads = Array.from({ length: 330 }, (_, i) => i);
    // In one turn of the event loop, and one by one.
    await Promise.all(payloads.slice(0, 300).map((i) => queue.offerAt(i, date)));
    for (const i of payloads.slice(300)) await queue.offerAt(i, date);

    const ready = newLine().getBlockingQueue<number>(name);
    const taken: number[] = [];
    while (taken.length < 330) taken.push(await ready.take());
    expect(taken).toEqual(payloads);
  });

  test.each([-1, -0.5, NaN, Infinity, -Infinity])(
    "refuses a delay of %d, and sends nothing",
    async (delay) => {
      const offer = queue.offer("x", delay);
      await expect(offer).rejects.toThrow(RangeError);
      await expect(offer).rejects.toThrow(
        `delay must be between 0 and 946728000000 ms (30 years), got ${delay}`,
      );
      expect(await queue.size()).toBe(0);
    },
  );

  test.each(["5", undefined, null, 5n, new Date(), {}])(
    "refuses a delay that is not a number, and sends nothing: %s",
    async (delay) => {
      const offer = queue.offer("x", delay as never);
      await expect(offer).rejects.toThrow(TypeError);
      await expect(offer).rejects.toThrow("delay must be a number of milliseconds, got ");
      expect(await queue.size()).toBe(0);
    },
  );

  test("refuses a misspelt option, and sends nothing", async () => {
    const misspelt = { kee: "order:42" } as object;
    await expect(queue.offer("x", MINUTE, misspelt)).rejects.toThrow(TypeError);
    await expect(queue.offerAt("x", new Date(), misspelt)).rejects.toThrow("kee");
    expect(await queue.size()).toBe(0);
  });

  test("rejects with Redis's reply if Redis refuses it: not stored", async () => {
    await redis.set(queueKeys(name).timeouts, "no ZSET");
    const error: unknown = await queue.offer("a secret", MINUTE).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(OfferError);
    expect(error).toMatchObject({ code: "OFFER", effect: "none", reply: "WRONGTYPE" });
    expect((error as Error).message).toContain(`cannot offer to queue "${name}": WRONGTYPE`);
  });

  test("leaves nothing behind if its last step is refused", async () => {
    await redis.set(queueKeys(name).order, "no LIST");
    await expect(queue.offer("x", MINUTE)).rejects.toThrow("WRONGTYPE");
    expect(await redis.exists(queueKeys(name).timeouts)).toBe(0);
  });
});

describe("offerAt", () => {
  test("makes the message due at the date, to the millisecond", async () => {
    const date = new Date(Date.now() + MINUTE);
    const { deadline, id } = await queue.offerAt("x", date);
    expect(deadline).toBe(date.getTime());
    expect(id.startsWith(`${date.getTime()}-`)).toBe(true);
    expect(await queue.nextDeadline()).toBe(date.getTime());
  });

  test.each([new Date(0), new Date(1), new Date("2001-02-03T04:05:06.789Z")])(
    "makes a date in the past due at once: %s",
    async (date) => {
      expect(await queue.offerAt("x", date)).toMatchObject({ deadline: date.getTime() });
      expect(await newLine().getBlockingQueue(name).take()).toBe("x");
    },
  );

  test("takes epoch milliseconds as well, rounded up", async () => {
    const at = Date.now() + MINUTE;
    expect(await queue.offerAt("x", at)).toMatchObject({ deadline: at });
    expect(await queue.offerAt("x", at + 0.25)).toMatchObject({ deadline: at + 1 });
  });

  test.each([
    ["2027-12-24T09:00", "2027-12-24T08:00Z"],
    ["2028-03-26T02:30", "2028-03-26T01:00Z"],
    ["2028-10-29T02:30:00.500", "2028-10-29T00:30:00.500Z"],
  ])("takes a local time: %s in Berlin", async (local, expected) => {
    const at = { local, timeZone: "Europe/Berlin" };
    const { id, deadline } = await queue.offerAt("x", at);
    expect(deadline).toBe(Date.parse(expected));
    await queue.rescheduleAt(id, { ...at, timeZone: "UTC" });
    expect(await queue.nextDeadline()).toBe(Date.parse(`${local}Z`));
  });

  test("takes any date up to the year 9999", async () => {
    const date = new Date("9999-12-31T23:59:59.999Z");
    await queue.offerAt("x", date);
    expect(await queue.nextDeadline()).toBe(date.getTime());
  });

  test.each<[unknown, string]>([
    [new Date(NaN), "at must be a valid date, got Invalid Date"],
    [new Date(-1), "at must not be before 1970, got 1969-12-31T23:59:59.999Z"],
    [
      -1,
      "at must be between 100000000000 and 253402300799999 epoch milliseconds (1973 to 9999), got -1",
    ],
    [
      "2026-01-01",
      "at must be a Date, a number of epoch milliseconds or { local, timeZone }, got string",
    ],
    [
      undefined,
      "at must be a Date, a number of epoch milliseconds or { local, timeZone }, got undefined",
    ],
    [
      { local: "2027-12-24T09:00" },
      'at.timeZone must be the name of a time zone such as "Europe/Berlin", got undefined',
    ],
    [
      { timeZone: "UTC" },
      "at must be a Date, a number of epoch milliseconds or { local, timeZone }, got object",
    ],
    [
      { local: "2027-12-24T09:00", zone: "UTC" },
      'property of at must be one of local, timeZone, got "zone"',
    ],
    [
      { local: new Date(), timeZone: "UTC" },
      'at.local must be a local time such as "2026-12-24T09:00", got a Date',
    ],
  ])("refuses %s, and sends nothing", async (date, message) => {
    const offer = queue.offerAt("x", date as Date);
    await expect(offer).rejects.toThrow(message);
    await expect(offer).rejects.toThrow(
      date instanceof Date || typeof date === "number" ? RangeError : TypeError,
    );
    expect(await queue.size()).toBe(0);
  });
});

test.each([
  [
    "2027-02-29T09:00",
    "UTC",
    'at.local must be a local time such as "2026-12-24T09:00", got "2027-02-29T09:00"',
  ],
  ["2027-02-28T09:00Z", "UTC", "it has an offset: pass new Date of it"],
  [
    "2027-02-28T09:00",
    "Europe/Atlantis",
    'at.timeZone must be the name of a time zone such as "Europe/Berlin", got "Europe/Atlantis"',
  ],
  ["1969-12-31T09:00", "UTC", "at must not be before 1970"],
])("a local time that there is not is refused: %s in %s", async (local, timeZone, message) => {
  const offer = queue.offerAt("x", { local, timeZone });
  await expect(offer).rejects.toThrow(RangeError);
  await expect(offer).rejects.toThrow(message);
  expect(await queue.size()).toBe(0);
});

describe("offerMany", () => {
  test("returns results in the order of the call, which is the insertion order", async () => {
    const delays = [5, 3, 9, 3, 7].map((minutes) => minutes * MINUTE);
    const before = await serverTime(redis);
    const results = await queue.offerMany(delays.map((delay) => ({ payload: delay, delay })));
    const after = await serverTime(redis);
    for (const [i, { deadline, id, outcome }] of results.entries()) {
      expect(outcome).toBe("added");
      expect(id.startsWith(`${deadline}-`)).toBe(true);
      const delay = delays[i] as number;
      expect(deadline).toBeGreaterThan(before + delay - 0.001);
      expect(deadline).toBeLessThan(after + delay + 1);
    }
    expect(await payloadsInRedis()).toEqual(delays);
    const ids = new Set(results.map(({ id }) => id));
    expect(ids.size).toBe(5);
  });

  test("takes any iterable, even an empty one", async () => {
    function* some() {
      for (const payload of ["a", "b"]) yield { payload, delay: MINUTE };
    }
    expect(await queue.offerMany(some())).toHaveLength(2);
    expect(await queue.offerMany(new Set([{ payload: "c", delay: MINUTE }]))).toHaveLength(1);
    expect(await queue.offerMany([])).toEqual([]);
    expect(await payloadsInRedis()).toEqual(["a", "b", "c"]);
  });

  test("takes an instant for each message, as offerAt does", async () => {
    const at = Date.now() + MINUTE;
    const results = await queue.offerMany([
      { payload: 1, at: new Date(at) },
      { payload: 2, at: at - 0.5 },
      { payload: 3, delay: 0, at: undefined },
    ]);
    expect(results.slice(0, 2).map(({ deadline }) => deadline)).toEqual([at, at]);
    expect(results[2]?.deadline).toBeLessThan(at);
  });

  test("keeps the order over many scripts", async () => {
    const payloads = Array.from({ length: 1050 }, (_, i) => i);
    const results = await queue.offerMany(
      payloads.map((payload) => ({ payload, delay: MINUTE + 1050 - payload })),
    );
    expect(results).toHaveLength(1050);
    expect(await payloadsInRedis()).toEqual(payloads);
  });

  test.each<[string, unknown, new () => Error, string]>([
    ["a bad delay", { payload: 3, delay: -1 }, RangeError, "messages[150].delay must be between 0"],
    ["no delay", { payload: 3 }, TypeError, "messages[150] must have either delay or at"],
    ["no message", null, TypeError, "null"],
    [
      "a payload that cannot be encoded",
      { payload: () => 1, delay: 1 },
      EncodeError as never,
      "cannot encode",
    ],
    [
      "a payload that is too large",
      { payload: "x".repeat(2 ** 20), delay: 1 },
      PayloadTooLargeError as never,
      "has 1048581 bytes",
    ],
  ])("with one bad message sends none: %s", async (_, bad, type, message) => {
    const messages: unknown[] = Array.from({ length: 200 }, (__, i) => ({ payload: i, delay: 1 }));
    messages[150] = bad;
    const offer = queue.offerMany(messages as never);
    await expect(offer).rejects.toThrow(type);
    await expect(offer).rejects.toThrow(message);
    expect(await queue.size()).toBe(0);
  });

  test("sends nothing if the iterable throws", async () => {
    await expect(queue.offerMany(failing())).rejects.toThrow("the source is dry");
    expect(await queue.size()).toBe(0);
  });

  test("reports a refusal by Redis for each message", async () => {
    await redis.set(queueKeys(name).timeouts, "no ZSET");
    const error: unknown = await queue
      .offerMany(Array.from({ length: 101 }, (_, i) => ({ payload: i, delay: MINUTE })))
      .catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(OfferManyError);
    const { results, message, code } = error as OfferManyError;
    expect(code).toBe("OFFER_MANY");
    expect(results).toHaveLength(101);
    expect(results.every((result) => result instanceof OfferError)).toBe(true);
    expect(message).toContain(`101 of 101 offers to queue "${name}" failed, the first with: `);
  });
});

describe("a payload", () => {
  test("of exactly maxPayloadBytes fits, a byte more does not", async () => {
    const line = newLine({ transfer: false, codec: "bytes", maxPayloadBytes: 100 });
    const bytes = line.getDelayedQueue<Buffer>(name);
    await bytes.offer(Buffer.alloc(100), MINUTE);

    const error: unknown = await bytes
      .offer(Buffer.alloc(101, "secret"), MINUTE)
      .catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(PayloadTooLargeError);
    expect(error).toMatchObject({ code: "PAYLOAD_TOO_LARGE", size: 101, maxPayloadBytes: 100 });
    expect((error as Error).message).toBe(
      `a payload for queue "${name}" has 101 bytes, but maxPayloadBytes is 100`,
    );
    expect(await bytes.size()).toBe(1);

    const larger = line.getDelayedQueue<Buffer>(name, { maxPayloadBytes: 101 });
    await larger.offer(Buffer.alloc(101), MINUTE);
    expect(await bytes.size()).toBe(2);
  });

  test("may have 1 MiB by default", async () => {
    const bytes = newLine({ transfer: false }).getDelayedQueue(name, { codec: "bytes" });
    await bytes.offer(Buffer.alloc(2 ** 20), MINUTE);
    await expect(bytes.offer(Buffer.alloc(2 ** 20 + 1), MINUTE)).rejects.toThrow(
      PayloadTooLargeError,
    );
    expect(await bytes.size()).toBe(1);
  });

  test("that the codec cannot encode is refused with the codec's error as cause", async () => {
    const cause = new Error("no such order");
    const codec: Codec = {
      name: "picky",
      encode: () => {
        throw cause;
      },
      decode: () => null,
    };
    const picky = newLine({ transfer: false }).getDelayedQueue(name, { codec });
    const error: unknown = await picky.offer("x", MINUTE).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(EncodeError);
    expect(error).toMatchObject({ code: "ENCODE", cause });
    expect((error as Error).message).toBe(
      `cannot encode a payload for queue "${name}" with codec "picky"`,
    );
    expect(await picky.size()).toBe(0);
  });

  test.each([["text"], [undefined], [[1, 2]], [new ArrayBuffer(2)], [Promise.resolve()]])(
    "for which the user's codec returns no bytes is refused: %s",
    async (result) => {
      const codec: Codec = { name: "odd", encode: () => result as never, decode: () => null };
      const odd = newLine({ transfer: false }).getDelayedQueue(name, { codec });
      await expect(odd.offer("x", MINUTE)).rejects.toMatchObject({
        code: "ENCODE",
        cause: new TypeError("encode gave no Uint8Array"),
      });
      expect(await odd.size()).toBe(0);
    },
  );

  test("may be changed by the caller as soon as it is offered", async () => {
    const bytes = newLine({ transfer: false }).getDelayedQueue(name, { codec: "bytes" });
    const payload = Buffer.from("before");
    const offer = bytes.offer(payload, MINUTE);
    payload.write("after!");
    await offer;
    expect(await bytes.insertionOrder.peek()).toEqual(Buffer.from("before"));
  });
});

describe("outstanding offers", () => {
  test("share one script if they are made in one turn of the event loop", async () => {
    const scripts = await watchScripts();
    await Promise.all([
      ...Array.from({ length: 20 }, (_, i) => queue.offer(i, MINUTE)),
      queue.offerAt(20, new Date(Date.now() + MINUTE)),
      queue.offerMany([21, 22].map((payload) => ({ payload, delay: MINUTE }))),
    ]);
    expect(await scripts()).toBe(1);
    expect(await queue.insertionOrder.readAll()).toEqual(Array.from({ length: 23 }, (_, i) => i));
  });

  test("share one script with and without keys; without any key they use a smaller one", async () => {
    await queue.offer("to begin with", MINUTE, { key: "to begin with" });
    await queue.offer("to begin with", MINUTE);
    const watched = await watchCommands(queueKeys(name).timeouts);
    const scripts = async () => (await watched()).splice(0).map(([, sha]) => sha);
    const offers = (count: number, isKeyed: (i: number) => boolean) =>
      Array.from({ length: count }, (_, i) =>
        queue.offer(i, MINUTE, isKeyed(i) ? { key: `${i}`, onDuplicate: "replace" } : {}),
      );

    await Promise.all(offers(25, (i) => i % 2 === 0));
    expect(await scripts()).toEqual([keyedScript.sha]);
    await Promise.all(offers(250, (i) => i === 249));
    expect(await scripts()).toEqual([keyedScript.sha, keyedScript.sha, keyedScript.sha]);
    await Promise.all(offers(250, () => false));
    expect(await scripts()).toEqual([plainScript.sha, plainScript.sha, plainScript.sha]);
  });

  test("of two handles share a script, those of two queues do not", async () => {
    const line = newLine({ transfer: false });
    const scripts = await watchScripts();
    const other = uniqueName("offer");
    const otherScripts = await watchCommands(queueKeys(other).timeouts);
    await Promise.all([
      line.getDelayedQueue(name).offer("a", MINUTE),
      line.getDelayedQueue(other).offer("x", MINUTE),
      line.getDelayedQueue(name, { maxPayloadBytes: 100 }).offer("b", MINUTE),
    ]);
    expect(await scripts()).toBe(1);
    expect(await otherScripts()).toHaveLength(1);
  });

  test.each([
    [25, 1],
    [26, 2],
    [200, 2],
    [250, 3],
  ])("are sent a hundred at a time, or in two halves: %i in %i scripts", async (count, sent) => {
    const scripts = await watchScripts();
    await queue.offerMany(Array.from({ length: count }, (_, i) => ({ payload: i, delay: MINUTE })));
    expect(await scripts()).toBe(sent);
    const all = Array.from({ length: count }, (_, i) => i);
    expect(await queue.insertionOrder.readAll()).toEqual(all);
  });

  test("are sent a megabyte at a time", async () => {
    const scripts = await watchScripts();
    const payload = "x".repeat(400_000);
    await queue.offerMany(Array.from({ length: 5 }, () => ({ payload, delay: MINUTE })));
    expect(await scripts()).toBe(3);
    expect(await queue.size()).toBe(5);
  });

  test("are sent separately if each is awaited before the next", async () => {
    const scripts = await watchScripts();
    await queue.offer(1, MINUTE);
    await queue.offer(2, MINUTE);
    expect(await scripts()).toBe(2);
  });

  test("arrive in the order in which they were made, starting with a client's first", async () => {
    const date = new Date(Date.now() + MINUTE);
    for (let round = 0; round < 5; round++) {
      const fresh = newLine({ transfer: false }).getDelayedQueue(uniqueName("offer"));
      const offers: Promise<OfferResult>[] = [];
      // In successive turns of the event loop: while the client connects, asks for the time, and sends.
      for (let i = 0; i < 300; i++) {
        offers.push(fresh.offerAt(i, date));
        await new Promise((resolve) => setImmediate(resolve));
      }
      const ids = (await Promise.all(offers)).map(({ id }) => id);
      expect(await fresh.insertionOrder.readAll()).toEqual(
        Array.from({ length: 300 }, (_, i) => i),
      );
      // Equal deadlines are delivered in the same order, too.
      expect(ids.toSorted()).toEqual(ids);
    }
  });

  test("are not held up by a refused one in the same turn", async () => {
    const [bad, good] = await Promise.allSettled([
      queue.offer(() => {}, MINUTE),
      queue.offer("good", MINUTE),
    ]);
    expect(bad.status).toBe("rejected");
    expect(good.status).toBe("fulfilled");
    expect(await queue.insertionOrder.readAll()).toEqual(["good"]);
  });
});
