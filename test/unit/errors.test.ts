import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { inspect } from "node:util";
import { ReplyError } from "ioredis";
import { describe, expect, expectTypeOf, test } from "vitest";
import { IN_PART } from "../../src/failure.ts";
import { UnreadableError } from "../../src/codecs/unreadable-error.ts";
import { UnwritableError } from "../../src/codecs/unwritable-error.ts";
import type { DelaylineEvents } from "../../src/events.ts";
import {
  ClosedError,
  DecodeError,
  DelaylineError,
  EncodeError,
  HandlerError,
  LeftRunningError,
  OfferError,
  OfferManyError,
  PayloadTooLargeError,
  QuarantineError,
  RedisError,
  RevokedError,
  TimeLimitError,
  ScheduleError,
  WrongHandleError,
  type AnyDelaylineError,
  type ErrorCode,
} from "../../src/index.ts";

const SECRET = "4111-1111-1111-1111";

/** The error that ioredis throws when Redis refuses a command; it has the arguments. */
function refusal(message: string): Error {
  const error = new ReplyError(message);
  return Object.assign(error, { command: { name: "evalsha", args: ["sha", SECRET] } });
}

/** Everything that a log could print of an error. */
function printed(error: Error): string {
  return [
    String(error),
    error.stack,
    inspect(error, { depth: Infinity, showHidden: true, getters: false }),
    JSON.stringify(error),
    JSON.stringify(error, Object.getOwnPropertyNames(error)),
    inspect(Object.entries(error), { depth: Infinity }),
    inspect(error.cause, { depth: Infinity, showHidden: true }),
  ].join("\n");
}

const samples = [
  {
    type: ClosedError,
    error: new ClosedError("the client"),
    code: "CLOSED",
    message: "the client is closed",
  },
  {
    type: EncodeError,
    error: new EncodeError("orders", "json", new TypeError("no")),
    code: "ENCODE",
    message: 'cannot encode a payload for queue "orders" with codec "json"',
  },
  {
    type: DecodeError,
    error: new DecodeError(
      "orders",
      "json",
      Buffer.from(SECRET),
      new SyntaxError(`unexpected ${SECRET}`),
    ),
    code: "DECODE",
    message:
      'cannot decode a message of 19 bytes from queue "orders" with codec "json" (SyntaxError)',
  },
  {
    type: DecodeError,
    error: new DecodeError("orders", "json", Buffer.from(SECRET), new UnreadableError("not JSON")),
    code: "DECODE",
    message: 'cannot decode a message of 19 bytes from queue "orders" with codec "json": not JSON',
  },
  {
    type: PayloadTooLargeError,
    error: new PayloadTooLargeError("orders", 11, 10),
    code: "PAYLOAD_TOO_LARGE",
    message: 'a payload for queue "orders" has 11 bytes, but maxPayloadBytes is 10',
  },
  {
    type: RedisError,
    error: new RedisError('cannot clear queue "orders"', refusal("WRONGTYPE no list")),
    code: "REDIS",
    message:
      'cannot clear queue "orders": WRONGTYPE no list; another program uses that key: give the queue another name, or delete the key',
  },
  {
    type: OfferError,
    error: new OfferError('cannot offer to queue "orders"', refusal("OOM full")),
    code: "OFFER",
    message:
      'cannot offer to queue "orders": OOM full; raise maxmemory (CONFIG SET maxmemory), or delete what fills it (redis-cli --bigkeys)',
  },
  {
    type: OfferManyError,
    error: new OfferManyError("orders", [
      { id: "1-00" },
      new OfferError("cannot offer", refusal("OOM full")),
      new OfferError("cannot offer", new Error("lost")),
    ]),
    code: "OFFER_MANY",
    message:
      '2 of 3 offers to queue "orders" failed, the first with: cannot offer: OOM full; raise maxmemory (CONFIG SET maxmemory), or delete what fills it (redis-cli --bigkeys)',
  },
  {
    type: QuarantineError,
    error: new QuarantineError("orders", 2),
    code: "QUARANTINED",
    message:
      '2 due message(s) of queue "orders" have an unknown layout and were put into its quarantine list',
  },
  {
    type: HandlerError,
    error: new HandlerError("orders", new Error("boom")),
    code: "HANDLER",
    message: 'the handler of queue "orders" failed',
  },
  {
    type: HandlerError,
    error: new HandlerError("orders", new Error("boom"), "onError"),
    code: "HANDLER",
    message: 'the onError of queue "orders" failed',
  },
  {
    type: LeftRunningError,
    error: new LeftRunningError("orders", 2),
    code: "LEFT_RUNNING",
    message:
      '2 handler(s) of queue "orders" were still running when close() stopped waiting for them',
  },
  {
    type: WrongHandleError,
    error: new WrongHandleError("orders", "is reliable: use getReliableQueue"),
    code: "WRONG_HANDLE",
    message: 'queue "orders" is reliable: use getReliableQueue',
  },
  {
    type: ScheduleError,
    error: new ScheduleError("orders", "nightly", new Error("boom")),
    code: "SCHEDULE",
    message: 'cannot plan schedule "nightly" of queue "orders": boom',
  },
  {
    type: RevokedError,
    error: new RevokedError("orders", "paid"),
    code: "REVOKED",
    message: 'the message of queue "orders" was revoked: paid',
  },
  {
    type: TimeLimitError,
    error: new TimeLimitError("orders", 1000),
    code: "TIME_LIMIT",
    message: 'a handler of queue "orders" has run for its time limit of 1000 ms',
  },
];

describe.each(samples)("the error $code", ({ type, error, code, message }) => {
  test("has its class, its name and a stable code, and says what was being done", () => {
    expect(error).toBeInstanceOf(type);
    expect(error).toBeInstanceOf(DelaylineError);
    expect(error).toBeInstanceOf(Error);
    expect(error.name).toBe(type.name);
    expect(error.code).toBe(code);
    expect(error.message).toBe(message);
    expect(String(error)).toBe(`${type.name}: ${message}`);
    expect(error.stack).toContain(`${type.name}: ${message}`);
  });

  test("shows no payload, however it is printed", () => {
    const text = printed(error);
    expect(text).toContain(message);
    expect(text).not.toContain(SECRET);
    // Nor as the bytes of a Buffer, in hex or in decimals.
    expect(text).not.toContain("34 31 31 31");
    expect(text).not.toMatch(/52,\s*49,\s*49,\s*49/);
  });
});

test("a DecodeError carries the bytes, for who asks for them", () => {
  const bytes = Buffer.from(SECRET);
  const error = new DecodeError("orders", "json", bytes, "a string was thrown");
  expect(error.bytes).toEqual(bytes);
  expect(error.message).toContain("(string)");
  expect(error.cause).toBeUndefined();
});

test("an EncodeError repeats what our own codec says", () => {
  const cause = new UnwritableError("a function at payload.f has no MessagePack form");
  expect(new EncodeError("orders", "msgpack", cause).message).toBe(
    'cannot encode a payload for queue "orders" with codec "msgpack": a function at payload.f has no MessagePack form',
  );
});

test("an EncodeError and a HandlerError keep what was thrown as their cause", () => {
  const thrown = { any: "thing" };
  expect(new EncodeError("orders", "json", thrown).cause).toBe(thrown);
  expect(new HandlerError("orders", thrown).cause).toBe(thrown);
});

describe("a RedisError", () => {
  test.each([
    ["WRONGTYPE Operation against a key holding the wrong kind of value", "WRONGTYPE"],
    ["OOM command not allowed when used memory > 'maxmemory'.", "OOM"],
    ["READONLY You can't write against a read only replica.", "READONLY"],
    ["ERR syntax error", "ERR"],
  ])("names the server's answer: %s", (message, reply) => {
    expect(new RedisError("cannot", refusal(message)).reply).toBe(reply);
  });

  test.each([
    new Error("Connection is closed."),
    Object.assign(new Error("connect ECONNREFUSED 127.0.0.1:6379"), { code: "ECONNREFUSED" }),
  ])("has none where the server did not answer: %s", (lost) => {
    expect(new RedisError("cannot", lost).reply).toBeUndefined();
  });

  test("keeps the failure as its cause: name, message and code, but no arguments", () => {
    const lost = Object.assign(new Error("connect ECONNREFUSED"), {
      code: "ECONNREFUSED",
      command: { name: "set", args: [SECRET] },
      lastNodeError: { command: { args: [SECRET] } },
      previousErrors: [SECRET],
    });
    const { cause } = new RedisError("cannot", lost);
    expect(cause).toMatchObject({ message: "connect ECONNREFUSED", code: "ECONNREFUSED" });
    expect(Object.keys(cause as Error)).toEqual(["code"]);
    expect(new RedisError("cannot", refusal("OOM")).cause).toMatchObject({ name: "ReplyError" });
  });

  test("leaves out the arguments that Redis quotes itself", () => {
    const error = new RedisError(
      "cannot",
      refusal(`ERR unknown command 'EVALSHA', with args beginning with: 'abc' '${SECRET}' \n 'x'`),
    );
    expect(error.message).toMatch(/^cannot: ERR unknown command 'EVALSHA'; remove its rename/);
    expect(printed(error)).not.toContain(SECRET);
  });

  test.each([undefined, null, "text", { message: SECRET }])(
    "makes do with what is no Error: %s",
    (thrown) => {
      const error = new RedisError("cannot", thrown);
      expect(error.message).toBe("cannot: unknown failure");
      expect(printed(error)).not.toContain(SECRET);
    },
  );
});

describe("an OfferError says what is known", () => {
  test('refused by Redis: stored is "no"', () => {
    expect(new OfferError("cannot", refusal("OOM full")).effect).toBe("none");
  });

  test('refused after a part was done: stored is "unknown", and the reply is the refusal', () => {
    const error = new OfferError("cannot", refusal(`NOPERM no permission${IN_PART}`));
    expect(error).toMatchObject({ effect: "unknown", reply: "NOPERM" });
  });

  test('no reply: stored is "unknown"', () => {
    expect(new OfferError("cannot", new Error("Connection is closed.")).effect).toBe("unknown");
  });
});

test("an OfferManyError has an entry for each message, in order", () => {
  const failure = new OfferError("cannot", new Error("lost"));
  const results = [{ id: "1" }, failure, { id: "3" }];
  expect(new OfferManyError("orders", results).results).toEqual(results);
});

test("names stay in a bundle whose classes have been renamed", async () => {
  // The bundler that tsx depends on.
  const fromTsx = createRequire(createRequire(import.meta.url).resolve("tsx/package.json"));
  const { build } = fromTsx("esbuild") as {
    build: (options: object) => Promise<{ outputFiles: [{ text: string }] }>;
  };
  const bundle = await build({
    entryPoints: [fileURLToPath(new URL("../../src/errors.ts", import.meta.url))],
    bundle: true,
    minify: true,
    write: false,
    platform: "node",
    format: "esm",
  });
  const { text } = bundle.outputFiles[0];
  // The classes are renamed indeed.
  expect(text).not.toContain("class ClosedError");
  const bundled = (await import(
    `data:text/javascript,${encodeURIComponent(text)}`
  )) as typeof import("../../src/errors.ts");
  const errors = [
    new bundled.ClosedError("the client"),
    new bundled.OfferError("cannot offer", new Error("lost")),
    new bundled.LeftRunningError("orders", 2),
  ];
  expect(errors.map(({ name }) => name)).toEqual(["ClosedError", "OfferError", "LeftRunningError"]);
  for (const error of errors) {
    const start = `${error.name}: ${error.message}`;
    expect(error.stack?.startsWith(start)).toBe(true);
    expect(inspect(error).startsWith(start)).toBe(true);
    expect(Object.keys(error)).not.toContain("name");
  }
});

// Types only: the type check is the test.
const told = (error: AnyDelaylineError) => {
  switch (error.code) {
    case "OFFER":
      expectTypeOf(error).toEqualTypeOf<OfferError>();
      return error.effect;
    case "REDIS":
      expectTypeOf(error).toExtend<RedisError>();
      expectTypeOf(error).not.toExtend<OfferError>();
      return error.reply;
    case "DECODE":
      expectTypeOf(error).toEqualTypeOf<DecodeError>();
      return error.bytes;
    case "PAYLOAD_TOO_LARGE":
      return error.maxPayloadBytes;
    case "OFFER_MANY":
      return error.results;
    case "QUARANTINED":
    case "LEFT_RUNNING":
      return error.count;
    case "HANDLER":
    case "WRONG_HANDLE":
    case "SCHEDULE":
      return error.queue;
    case "REVOKED":
      return error.reason;
    case "TIME_LIMIT":
      return error.isStuck;
    case "CLOSED":
    case "ENCODE":
      return error.message;
    default:
      return expectTypeOf(error).toBeNever();
  }
};

const caught = (error: unknown) => {
  if (!(error instanceof DelaylineError)) return;
  expectTypeOf(error).toEqualTypeOf<AnyDelaylineError>();
  if (error.code === "HANDLER") expectTypeOf(error).toEqualTypeOf<HandlerError>();
};

test("the code identifies the error, in TypeScript as well", () => {
  for (const { error } of samples) caught(error);
  expectTypeOf<AnyDelaylineError["code"]>().toEqualTypeOf<ErrorCode>();
  expectTypeOf<DelaylineEvents["error"]>().toEqualTypeOf<[error: AnyDelaylineError]>();
  for (const { error } of samples) expect(() => told(error as AnyDelaylineError)).not.toThrow();
});

test("a Cluster client that gave up says whether the last attempt was refused, and with what", () => {
  expect(gaveUp("ReplyError: TRYAGAIN Multiple keys request")).toMatchObject({
    reply: "TRYAGAIN",
    effect: "none",
  });
  expect(gaveUp("Error: Connection is closed.").effect).toBe("unknown");
});

function gaveUp(last: string): OfferError {
  const reason = new Error(`Too many Cluster redirections. Last error: ${last}`);
  return new OfferError("cannot offer", reason);
}
