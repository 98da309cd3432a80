import { describe, expect, test } from "vitest";
import { BusyWait } from "../../../src/time/busy-wait.ts";
import { hashOf } from "../../../src/queue/message/bucket.ts";
import {
  checkDuration,
  checkIdOrKey,
  checkInstant,
  checkKey,
  checkMessageId,
  checkWhole,
} from "../../../src/queue/checks.ts";
import { clientSettings, DEFAULTS, queueSettings } from "../../../src/queue/options.ts";
import { Delayline } from "../../../src/index.ts";
import { checkNewMessage, offerRule } from "../../../src/handles/offer-options.ts";

const THIRTY_YEARS = 946_728_000_000;

const ID = "1755757960123-0102030405060708090a0b0c0d0e0f10";

const json = { name: "mine", encode: () => Buffer.alloc(0), decode: () => null };

describe("a queue's settings", () => {
  test("default to the documented values", () => {
    const { codec, ...rest } = queueSettings();
    expect(codec.name).toBe("msgpack");
    expect(rest).toEqual({
      transfer: true,
      interop: "none",
      maxPayloadBytes: 1_048_576,
      anyTime: false,
    });
  });

  test("default to the client's", () => {
    const client = {
      codec: json,
      transfer: false,
      interop: "redisson",
      maxPayloadBytes: 5,
      anyTime: true,
    } as const;
    expect(queueSettings({}, client)).toEqual(client);
    expect(queueSettings(undefined, client)).toEqual(client);
  });

  test("a queue's own option wins over the client's", () => {
    const own = {
      codec: json,
      transfer: true,
      interop: "none",
      maxPayloadBytes: 7,
      anyTime: false,
    } as const;
    const client = {
      codec: "string",
      transfer: false,
      interop: "redisson",
      maxPayloadBytes: 5,
      anyTime: true,
    } as const;
    expect(queueSettings(own, client)).toEqual(own);
  });

  test("treat an undefined option as left out", () => {
    const options = { codec: undefined, transfer: undefined, interop: undefined } as never;
    expect(queueSettings(options, { codec: json, transfer: false })).toMatchObject({
      codec: json,
      transfer: false,
      interop: "none",
    });
  });

  test.each<[object, string]>([
    [{ transfer: "yes" }, 'transfer must be a boolean, got "yes"'],
    [{ transfer: 0 }, "transfer must be a boolean, got 0"],
    [{ interop: "java" }, 'interop must be "none" or "redisson", got "java"'],
    [{ anyTime: 1 }, "anyTime must be a boolean, got 1"],
    [{ interop: true }, 'interop must be "none" or "redisson", got true'],
    [
      { maxPayloadBytes: "1" },
      "maxPayloadBytes must be a whole number, got string; convert it with Number",
    ],
    [
      { codec: "xml" },
      'codec must be msgpack, json, string, bytes or an object with name, encode and decode; got "xml"',
    ],
    [
      { tranfser: true },
      'queue option must be one of codec, transfer, interop, maxPayloadBytes, anyTime, partitions, got "tranfser"; did you mean transfer?',
    ],
    [
      { unreachableTimeout: 1 },
      'queue option must be one of codec, transfer, interop, maxPayloadBytes, anyTime, partitions, got "unreachableTimeout"; unreachableTimeout is an option of new Delayline',
    ],
  ])("refuse %j with a TypeError", (options, message) => {
    expect(() => queueSettings(options as never)).toThrow(new TypeError(message));
  });

  test.each([0, -1, 1.5, NaN, Infinity, 512 * 1024 * 1024 + 1])(
    "refuse maxPayloadBytes %d with a RangeError",
    (maxPayloadBytes) => {
      expect(() => queueSettings({ maxPayloadBytes })).toThrow(
        new RangeError(
          `maxPayloadBytes must be a whole number between 1 and 536870912, got ${maxPayloadBytes}`,
        ),
      );
    },
  );

  test.each([
    [null, "null"],
    [5, "5"],
    [true, "true"],
  ])("refuse %s in place of an object", (options, shown) => {
    expect(() => queueSettings(options as never)).toThrow(
      new TypeError(`queue options must be an object, got ${shown}; such as { codec }`),
    );
  });
});

describe("a client's settings", () => {
  test("have a default", () => {
    const { callTimeout, unreachableTimeout, heartbeat, onRestore } = DEFAULTS;
    const busyWait = expect.any(BusyWait) as BusyWait;
    const defaults = { callTimeout, unreachableTimeout, heartbeat, busyWait, onRestore };
    expect(clientSettings({})).toEqual(defaults);
    expect(clientSettings({ unreachableTimeout: 0 })).toEqual({
      ...defaults,
      unreachableTimeout: 0,
    });
    expect(clientSettings({ callTimeout: 1 })).toEqual({ ...defaults, callTimeout: 1 });
    expect(clientSettings({ onRestore: "pause" })).toEqual({ ...defaults, onRestore: "pause" });
  });

  test.each<[object, string]>([
    [{ onRestore: "stop" }, 'onRestore must be "report" or "pause", got "stop"'],
    [
      { unreachableTimeout: "1s" },
      "unreachableTimeout must be a number of milliseconds, got string",
    ],
    [
      { url: "redis://localhost" },
      'option must be one of redis, codec, transfer, interop, maxPayloadBytes, anyTime, callTimeout, unreachableTimeout, heartbeat, busyWait, onRestore, got "url"; did you mean redis?',
    ],
  ])("refuse %j with a TypeError", (options, message) => {
    expect(() => clientSettings(options as never)).toThrow(new TypeError(message));
  });

  test.each([-1, NaN, Infinity])(
    "refuse unreachableTimeout %d with a RangeError",
    (unreachableTimeout) => {
      expect(() => clientSettings({ unreachableTimeout })).toThrow(
        new RangeError(
          `unreachableTimeout must be between 0 and 946728000000 ms (30 years), got ${unreachableTimeout}`,
        ),
      );
    },
  );

  test.each([0, -1, 1.5, NaN, Infinity, 2 ** 31])(
    "refuse callTimeout %d with a RangeError",
    (callTimeout) => {
      expect(() => clientSettings({ callTimeout })).toThrow(
        new RangeError(
          `callTimeout must be a whole number between 1 and 2147483647 ms, got ${callTimeout}`,
        ),
      );
    },
  );

  test("a URL in place of the options is refused; the error does not show its password", () => {
    const url = "redis://user:s3cret@localhost:6379" as never;
    expect(() => new Delayline(url)).toThrow(TypeError);
    expect(() => new Delayline(url)).toThrow("options must be an object");
    expect(() => new Delayline(url)).not.toThrow("s3cret");
  });

  test.each<[unknown, string]>([
    [6379, "number"],
    [true, "boolean"],
    [[["redis://localhost"]], "object"],
    [() => {}, "function"],
  ])("refuse an address of no known form: %s", (redis, type) => {
    expect(() => new Delayline({ redis } as never)).toThrow(
      new TypeError(
        `redis must be a URL, ioredis options, or a Redis or Cluster of ioredis; got ${type}`,
      ),
    );
  });

  test.each([
    "s3cret@localhost",
    "http://user:s3cret@localhost",
    "",
    "localhost:6379",
    "redis://user:s3cret@[no-host",
  ])("refuse an address that is no Redis URL, and do not quote it: %s", (redis) => {
    const make = () => new Delayline({ redis });
    expect(make).toThrow(TypeError);
    expect(make).toThrow(/^redis must be a (valid )?URL/);
    expect(make).not.toThrow("s3cret");
  });
});

describe("a duration", () => {
  test.each([0, -0, 0.001, 1.5, 900_000, THIRTY_YEARS])("%d ms is legal", (value) => {
    expect(() => checkDuration("delay", value)).not.toThrow();
  });

  test.each([-1, -0.001, NaN, Infinity, -Infinity])("%d is out of range", (value) => {
    expect(() => checkDuration("delay", value)).toThrow(
      new RangeError(`delay must be between 0 and 946728000000 ms (30 years), got ${value}`),
    );
  });

  test.each([THIRTY_YEARS + 1, Date.now(), 9e15])("%d is an instant", (value) => {
    expect(() => checkDuration("timeout", value)).toThrow(
      new RangeError(
        `timeout must be between 0 and 946728000000 ms (30 years), got ${value}; an instant? subtract Date.now()`,
      ),
    );
  });

  test("may be of any length with anyTime, up to 8.99e15", () => {
    const anyTime = true;
    for (const legal of [0, Date.now(), 8.99e15]) checkDuration("delay", legal, { anyTime });
    for (const value of [-1, NaN, 8.99e15 + 1, 9e15]) {
      expect(() => checkDuration("delay", value, { anyTime })).toThrow(
        new RangeError(`delay must be between 0 and 8990000000000000 ms, got ${value}`),
      );
    }
  });

  test.each([
    ["5", "string; convert it with Number"],
    [5n, "bigint"],
    [undefined, "undefined"],
    [null, "null"],
    [new Date(), "a Date; an instant? subtract Date.now()"],
    [[5], "object"],
  ])("%s is no number", (value, type) => {
    expect(() => checkDuration("delay", value)).toThrow(
      new TypeError(`delay must be a number of milliseconds, got ${type}`),
    );
  });

  test("the longest one ends below 9e15, the limit of deadlines", () => {
    expect(Date.now() + 8.99e15).toBeLessThan(9e15);
  });
});

describe("an instant", () => {
  test.each([0, 1, 999_999_999, 10_000_000_001, 1_755_757_960_123, 253_402_300_799_999])(
    "new Date(%d) is legal",
    (at) => {
      expect(checkInstant("date", new Date(at))).toBe(at);
    },
  );

  test.each([
    [1_000_000_000, "1970-01-12T13:46:40.000Z", "seconds"],
    [10_000_000_000, "1970-04-26T17:46:40.000Z", "seconds"],
    [253_402_300_800_000, "+010000-01-01T00:00:00.000Z", "microseconds"],
    [1_800_000_000_000_000, "+059009-09-24T08:00:00.000Z", "microseconds"],
  ])("new Date(%d) was made from another unit", (at, shown, unit) => {
    expect(() => checkInstant("date", new Date(at))).toThrow(
      new RangeError(
        `date must be a plausible date, got ${shown}; made from ${unit}? a Date takes milliseconds`,
      ),
    );
    expect(checkInstant("date", new Date(at), { anyTime: true })).toBe(at);
  });

  test("a date before 1970 is out of range", () => {
    expect(() => checkInstant("date", new Date(-1))).toThrow(
      new RangeError("date must not be before 1970, got 1969-12-31T23:59:59.999Z"),
    );
  });

  test("an invalid date is out of range", () => {
    expect(() => checkInstant("date", new Date("soon"))).toThrow(
      new RangeError("date must be a valid date, got Invalid Date"),
    );
  });

  test.each([
    [1e11, 1e11],
    [1_755_757_960_123, 1_755_757_960_123],
    [1_755_757_960_122.001, 1_755_757_960_123],
    [253_402_300_799_999, 253_402_300_799_999],
  ])("%d epoch milliseconds are legal, and rounded up", (at, whole) => {
    expect(checkInstant("date", at)).toBe(whole);
  });

  test.each([
    [1_900_000_000, "; a delay? use offer"],
    [60_000, "; a delay? use offer"],
    [0, "; a delay? use offer"],
    [-1, "; a delay? use offer"],
    [1_795_359_664_872_000, ""],
    [1_795_359_664_872_000_000, ""],
    [Infinity, ""],
    [NaN, ""],
  ])("%d is not plausible", (at, delay) => {
    expect(() => checkInstant("date", at, { delay: "use offer" })).toThrow(
      new RangeError(
        `date must be between 100000000000 and 253402300799999 epoch milliseconds (1973 to 9999), got ${at}${delay}; epoch is in milliseconds`,
      ),
    );
  });

  test("may be any with anyTime, up to 8.99e15", () => {
    const anyTime = true;
    for (const at of [0, 60_000, 8.99e15]) expect(checkInstant("date", at, { anyTime })).toBe(at);
    for (const at of [-1, -0.5, NaN, Infinity, -Infinity, 8.99e15 + 2]) {
      expect(() => checkInstant("date", at, { anyTime })).toThrow(
        `date must be between 0 and 8990000000000000 epoch milliseconds, got ${at}`,
      );
    }
  });

  test.each([
    ["2026-01-01", "string; convert it with new Date"],
    [1n, "bigint"],
    [null, "null"],
    [undefined, "undefined"],
    [{ getTime: () => 1 }, "object"],
  ])("%s is no instant", (value, type) => {
    expect(() => checkInstant("date", value)).toThrow(
      new TypeError(
        `date must be a Date, a number of epoch milliseconds or { local, timeZone }, got ${type}`,
      ),
    );
  });
});

describe("a whole number", () => {
  test.each([1, 5, 10])("%d lies between 1 and 10", (value) => {
    expect(() => checkWhole("max", value, 1, 10)).not.toThrow();
  });

  test.each([0, 11, 1.5, -1, NaN, Infinity])("%d does not", (value) => {
    expect(() => checkWhole("max", value, 1, 10)).toThrow(
      new RangeError(`max must be a whole number between 1 and 10, got ${value}`),
    );
  });

  test.each([
    ["5", "string; convert it with Number"],
    [5n, "bigint"],
    [undefined, "undefined"],
    [null, "null"],
  ])("%s is no number", (value, type) => {
    expect(() => checkWhole("max", value, 1, 10)).toThrow(
      new TypeError(`max must be a whole number, got ${type}`),
    );
  });
});

describe("a business key", () => {
  test.each(["order:42", "k", " ", "é".repeat(100), "x".repeat(200), "17-42", "{order}"])(
    "may be %j",
    (key) => {
      expect(() => checkKey(key)).not.toThrow();
    },
  );

  test.each([
    ["", 0],
    ["x".repeat(201), 201],
    ["é".repeat(101), 202],
  ])("has 1 to 200 bytes, unlike %j", (key, bytes) => {
    expect(() => checkKey(key)).toThrow(
      new RangeError(`key must have 1 to 200 bytes of UTF-8, got ${bytes}`),
    );
  });

  test.each<[unknown, string]>([
    [42, "key must be a string, got number; convert it with String"],
    [undefined, "key must be a string, got undefined"],
    [null, "key must be a string, got null"],
    [Buffer.from("k"), "key must be a string, got object"],
    ["a\ud800", "key must be well-formed Unicode"],
    [
      "1755757960123-0102030405060708090a0b0c0d0e0f10",
      'key must not look like a message id (<deadline>-<hex>), got "1755757960123-0102030405060708090a0b0c0d0e0f10"',
    ],
  ])("cannot be %j", (key, message) => {
    expect(() => checkKey(key)).toThrow(new TypeError(message));
  });
});

const HASH_OF_K = hashOf("k");

test.each([
  [{ id: ID, deadline: 5, outcome: "added" }, "object; of the result of an offer pass its id"],
  [Promise.resolve(ID), "a Promise; await it"],
  [42, "number; convert it with String"],
])("an id or key cannot be %o", (value, got) => {
  expect(() => checkIdOrKey(value)).toThrow(new TypeError(`key must be a string, got ${got}`));
  expect(() => checkMessageId(value)).toThrow(
    new TypeError(`id must be a message id (<deadline>-<hex>), got ${got}`),
  );
});

describe("the options of an offer", () => {
  test.each<[object, object]>([
    [{}, {}],
    [{ key: "k" }, { key: "k", rule: "ignore", hash: HASH_OF_K }],
    [{ partitionKey: "k" }, { hash: HASH_OF_K }],
    [
      { key: "other", partitionKey: "k" },
      { key: "other", rule: "ignore", hash: HASH_OF_K },
    ],
    [
      { key: "k", onDuplicate: "update" },
      { key: "k", rule: "update", hash: HASH_OF_K },
    ],
    [
      { key: "k", onDuplicate: "replace" },
      { key: "k", rule: "replace", hash: HASH_OF_K },
    ],
    [
      { key: "k", onDuplicate: "replace", maxWait: 1.5 },
      { key: "k", rule: "replace", maxWait: 1.5, hash: HASH_OF_K },
    ],
    [{ key: undefined, onDuplicate: undefined }, {}],
  ])("%j make the rule %j", (options, rule) => {
    expect(offerRule(options)).toEqual(rule);
  });

  test.each<[unknown, string]>([
    [null, "offer options must be an object, got null; such as { key }"],
    [5, "offer options must be an object, got 5; such as { key }"],
    [{ key: 5 }, "key must be a string, got number; convert it with String"],
    [{ onDuplicate: "update" }, "onDuplicate needs a key"],
    [{ maxWait: 5 }, "maxWait needs a key"],
    [{ partitionKey: 5 }, "partitionKey must be a string, got number; convert it with String"],
    [
      { key: "k", onDuplicate: "drop" },
      'onDuplicate must be "ignore", "replace", "update" or "collect", got "drop"',
    ],
    [
      { key: "k", maxWait: 5 },
      'maxWait goes with onDuplicate "replace" or "collect", got "ignore"',
    ],
    [{ maxCollected: 5 }, "maxCollected needs a key"],
    [
      { key: "k", onDuplicate: "replace", maxCollected: 5 },
      'maxCollected goes with onDuplicate "collect", got "replace"',
    ],
    [
      { key: "k", onDuplicate: "collect" },
      'onDuplicate "collect" needs a reliable queue: a ready message of a plain one is one payload',
    ],
    [
      { key: "k", onDuplicate: "replace", maxWait: "5" },
      "maxWait must be a number of milliseconds, got string; convert it with Number",
    ],
  ])("%j are refused with a TypeError", (options, message) => {
    expect(() => offerRule(options as never)).toThrow(new TypeError(message));
  });

  test.each([
    [{}, 100],
    [{ maxCollected: 2 }, 2],
    [{ maxCollected: 1000 }, 1000],
  ])("to a reliable queue, %j collects at most %d payloads and the queue's bytes", (more, most) => {
    const options = { key: "k", onDuplicate: "collect", ...more } as const;
    const { rule } = offerRule(options, { takesHeaders: true, maxPayloadBytes: 512 });
    expect(rule).toBe(`collect,${most},512`);
  });

  test.each([1, 1001, 2.5, NaN])(
    "a maxCollected of %d is refused with a RangeError",
    (maxCollected) => {
      const options = { key: "k", onDuplicate: "collect", maxCollected } as const;
      expect(() => offerRule(options, { takesHeaders: true })).toThrow(
        new RangeError(
          `maxCollected must be a whole number between 2 and 1000, got ${maxCollected}`,
        ),
      );
    },
  );

  test.each([-1, NaN, Infinity])("a maxWait of %d is refused with a RangeError", (maxWait) => {
    expect(() => offerRule({ key: "k", onDuplicate: "replace", maxWait })).toThrow(
      new RangeError(`maxWait must be between 0 and 946728000000 ms (30 years), got ${maxWait}`),
    );
  });
});

describe("deliverWithin among the options of an offer", () => {
  test.each([0, 5, 10, 999])("is refused if it is nearly always meant in seconds: %d", (value) => {
    const ifSeconds = value > 0 ? `; seconds? write ${value * 1000}` : "";
    const message = `deliverWithin must be at least 1000 ms, got ${value}${ifSeconds}; every message is moved some milliseconds late, and would be dropped; if it is meant, set anyTime`;
    const check = () => offerRule({ deliverWithin: value });
    expect(check).toThrow(new RangeError(message));
    expect(offerRule({ deliverWithin: value }, { anyTime: true })).toEqual({
      deliverWithin: value,
    });
  });

  test.each([1000, 1000.5, 86_400_000])("is accepted from a second on: %d", (value) => {
    expect(offerRule({ deliverWithin: value })).toEqual({ deliverWithin: Math.ceil(value) });
  });

  test.each([-1, NaN, Infinity])(
    "is refused with anyTime, too, if it is no duration: %d",
    (value) => {
      expect(() => offerRule({ deliverWithin: value }, { anyTime: true })).toThrow(RangeError);
    },
  );
});

describe("headers among the options of an offer", () => {
  test("are known only to queues that take them", () => {
    const options = { headers: { traceparent: "00-1" } };
    expect(offerRule(options, { takesHeaders: true })).toEqual(options);
    const message =
      'offer option must be one of key, onDuplicate, maxCollected, maxWait, once, spread, partitionKey, onlyIf, deliverWithin, lane, priority, signal, got "headers"; headers is an option of an offer to a reliable queue';
    expect(() => offerRule(options)).toThrow(new TypeError(message));
  });

  test("are not read from a prototype by a queue that does not take them", () => {
    expect(offerRule(Object.create({ headers: { a: "1" } }) as object)).toEqual({});
  });

  test("can be combined with the key and its rule", () => {
    const options = { key: "k", onDuplicate: "update", headers: { a: "1" } } as const;
    const rule = { key: "k", rule: "update", hash: HASH_OF_K };
    expect(offerRule(options, { takesHeaders: true })).toEqual({ ...rule, headers: { a: "1" } });
  });

  test.each([{}, undefined])("are left out if they are %j", (headers) => {
    expect(offerRule({ headers } as object, { takesHeaders: true }).headers).toBeUndefined();
  });

  test("are checked", () => {
    const message = "headers must be a plain object of strings, got number";
    expect(() => offerRule({ headers: 5 } as object, { takesHeaders: true })).toThrow(
      new TypeError(message),
    );
  });

  test("are allowed in a message of offerMany only where the queue takes them", () => {
    const newMessage = { payload: "a", delay: 5, headers: {} };
    expect(() => checkNewMessage("messages[0]", newMessage, { takesHeaders: true })).not.toThrow();
    expect(() => checkNewMessage("messages[0]", newMessage)).toThrow(
      new TypeError(
        'property of messages[0] must be one of payload, delay, at, key, onDuplicate, maxCollected, maxWait, once, spread, partitionKey, onlyIf, deliverWithin, lane, priority, got "headers"; headers is an option of an offer to a reliable queue',
      ),
    );
  });
});
