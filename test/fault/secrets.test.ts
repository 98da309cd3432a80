import { inspect } from "node:util";
import type { RedisOptions } from "ioredis";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import {
  Delayline,
  type Codec,
  type DelaylineOptions,
  type QueueOptions,
} from "../../src/index.ts";
import {
  JavaValue,
  JsonJacksonCodec,
  Kryo5Codec,
  LongCodec,
  MsgPackJacksonCodec,
} from "../../src/adapters/redisson/index.ts";
import { newLine, newLineThatMayFail } from "../helpers/delayline.ts";
import { eventually } from "../helpers/eventually.ts";
import { startOwnServer } from "../helpers/own-server.ts";
import { newRedis, redisUrl, uniqueName } from "../helpers/redis.ts";
import { startProxy } from "../helpers/tcp-proxy.ts";

/*
 * No payload and no password shows up in an error, however it is printed, nor in a warning or on the console. (Errors
 * thrown by a user's own handler or codec are the user's.)
 */

const PAYLOAD = "hush-payload-5f1c";
const PASSWORD = "hush-password-9e2a";

/** Everything written to the console, and every process warning. */
let output: string[] = [];
const onWarning = (warning: Error) => void output.push(printed(warning));

beforeEach(() => {
  output = [];
  for (const method of ["error", "warn", "log", "info", "debug"] as const) {
    vi.spyOn(console, method).mockImplementation((...words: unknown[]) => {
      output.push(...words.map(printed));
    });
  }
  process.on("warning", onWarning);
});

afterEach(() => {
  process.off("warning", onWarning);
  vi.restoreAllMocks();
  expectNoSecret(output.join("\n"));
});

/** Everything that printing an error in any way can show. */
function printed(error: unknown): string {
  const chain: unknown[] = [];
  for (let link = error; link !== undefined && chain.length < 10;) {
    chain.push(link);
    link = link instanceof Error ? link.cause : undefined;
  }
  return chain
    .flatMap((link) => [
      String(link),
      link instanceof Error ? String(link.stack) : "",
      inspect(link, { depth: Infinity, showHidden: true, maxStringLength: null }),
      inspect(link, { depth: Infinity, maxArrayLength: null, compact: false }),
      JSON.stringify(link) ?? "",
      // Loggers that copy enumerable properties, and others that copy all.
      typeof link === "object" && link !== null ? inspect({ ...link }, { depth: Infinity }) : "",
      typeof link === "object" && link !== null
        ? inspect(Object.getOwnPropertyDescriptors(link), { depth: Infinity })
        : "",
    ])
    .join("\n");
}

/** Neither as text nor as bytes: `<Buffer 68 75 ...>`, `[104,117,...]`, hex, base64. */
function expectNoSecret(text: string): void {
  const squeezed = text.replaceAll(/\s/g, "");
  for (const secret of [PAYLOAD, PASSWORD]) {
    // Even a part would be too much.
    const bytes = Buffer.from(secret.slice(0, 12));
    const forms = [bytes.toString(), bytes.toString("hex"), [...bytes].join()];
    for (const form of [...forms, bytes.toString("base64")]) {
      const at = squeezed.indexOf(form);
      if (at !== -1) throw new Error(`a secret shows: ${squeezed.slice(at - 200, at + 100)}`);
    }
  }
}

/** The error that a call rejects with or throws. */
async function failureOf(call: () => unknown): Promise<unknown> {
  try {
    await call();
  } catch (error) {
    return error;
  }
  throw new Error(`did not fail: ${call.toString()}`);
}

/** Each of these calls fails, and its error shows no payload. They run at the same time. */
async function expectDiscreet(...calls: (() => unknown)[]): Promise<void> {
  for (const failure of await Promise.all(calls.map(failureOf))) expectNoSecret(printed(failure));
}

/** Every call that a client can make with a payload. */
function callsWith(line: Delayline, name: string, options: QueueOptions<string> = {}) {
  const delayed = line.getDelayedQueue<string>(name, options);
  const ready = line.getBlockingQueue<string>(name, options);
  return [
    () => delayed.offer(PAYLOAD, 10),
    () => delayed.offerAt(PAYLOAD, new Date()),
    () => delayed.offerMany([{ payload: PAYLOAD, delay: 10 }]),
    () => ready.put(PAYLOAD),
    () => ready.putMany([PAYLOAD, PAYLOAD]),
    () => delayed.insertionOrder.contains(PAYLOAD),
    () => delayed.insertionOrder.remove(PAYLOAD),
    () => delayed.insertionOrder.removeAll([PAYLOAD]),
    () => delayed.insertionOrder.retainAll([PAYLOAD]),
  ];
}

test("the printing shows an error's contents", async () => {
  // ioredis's own errors do contain the arguments, which is why these tests exist.
  const redis = newRedis();
  const name = uniqueName();
  await redis.set(name, "x");
  const error = await failureOf(() => redis.rpush(name, PAYLOAD));
  expect(() => expectNoSecret(printed(error))).toThrow();
  const withBytes = Object.assign(new Error("x"), { bytes: Buffer.from(PAYLOAD) });
  expect(() => expectNoSecret(printed(withBytes))).toThrow();
});

test("WRONGTYPE errors show no payload", async () => {
  const name = uniqueName();
  const redis = newRedis();
  await redis.set(`redisson_delay_queue_timeout:{${name}}`, PAYLOAD);
  await redis.set(`redisson_delay_queue:{${name}}`, PAYLOAD);
  await redis.set(name, PAYLOAD);
  const line = newLineThatMayFail();
  const calls = callsWith(line, name);
  await expectDiscreet(...calls, () => line.getBlockingQueue(name).take());
  await expectDiscreet(() => line.getBlockingQueue(name).poll());
  await eventually(() => line.errors.length > 0);
  for (const error of line.errors) expectNoSecret(printed(error));
});

test("OOM errors show no payload", async () => {
  const server = await startOwnServer();
  await newRedis(server.url).config("SET", "maxmemory-policy", "noeviction", "maxmemory", "1");
  const line = newLine({ redis: server.url, transfer: false });
  await expectDiscreet(...callsWith(line, uniqueName()).slice(0, 5));
});

test("a wrong password never shows: in a URL, in options, of a user; nor when it is missing", async () => {
  const server = await startOwnServer({ args: ["--requirepass", "right"] });
  const { port } = server;
  const addresses: NonNullable<DelaylineOptions["redis"]>[] = [
    `redis://:${PASSWORD}@127.0.0.1:${port}`,
    `redis://somebody:${PASSWORD}@127.0.0.1:${port}`,
    { port, password: PASSWORD },
    { port, username: "somebody", password: PASSWORD, protocol: 2 },
    `redis://127.0.0.1:${port}`,
  ];
  for (const redis of addresses) {
    const line = newLineThatMayFail({ redis });
    const queue = line.getBlockingQueue(uniqueName());
    // All at once, since ioredis retries ever more slowly.
    await expectDiscreet(
      ...callsWith(line, uniqueName()),
      () => queue.poll(),
      () => line.serverTime(),
    );
    await eventually(() => line.errors.length > 0);
    for (const error of line.errors) expectNoSecret(printed(error));
    expectNoSecret(printed(line));
    await line.close();
  }
});

test("a password that the server does not need never shows", async () => {
  const server = await startOwnServer();
  const line = newLine({ redis: { port: server.port, password: PASSWORD, protocol: 2 } });
  await line.getDelayedQueue(uniqueName()).offer(PAYLOAD, 0);
  // ioredis warns about it.
  expect(output.length).toBeGreaterThan(0);
});

test("invalid addresses show no password", async () => {
  await expectDiscreet(
    () => new Delayline({ redis: `:${PASSWORD}@localhost` }),
    () => new Delayline({ redis: `http://:${PASSWORD}@localhost` }),
    () => new Delayline({ redis: `redis://:${PASSWORD}@localhost:not-a-port` }),
    () => new Delayline({ redis: `redis://:${PASSWORD}@local host:6379` }),
    () => new Delayline({ redis: `redis://:${PASSWORD}@localhost:99999` }),
    () => new Delayline({ redis: `redis://user:${PASSWORD}%zz@localhost:6379` }),
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- What JavaScript may pass.
    () => new Delayline({ redis: [PASSWORD] as RedisOptions }),
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- What JavaScript may pass.
    () => new Delayline({ redis: 5 as RedisOptions }),
  );
});

test("connections that are lost, time out or are closed show no secret", async () => {
  const proxy = await startProxy(redisUrl());
  const { port } = proxy;
  const password = PASSWORD;
  const kinds: (RedisOptions & { replyMapping?: never })[] = [
    { port, maxRetriesPerRequest: 0 },
    { port, maxRetriesPerRequest: 0, autoResendUnfulfilledCommands: false },
    { port, commandTimeout: 50 },
    { port, maxRetriesPerRequest: 0, enableAutoPipelining: true },
    { port, socketTimeout: 50, maxRetriesPerRequest: 0 },
  ];
  for (const options of kinds) {
    const line = newLineThatMayFail({ redis: { ...options, password }, transfer: false });
    const name = uniqueName();
    await line.getDelayedQueue(name).offer("warm", 60_000);
    for (const call of callsWith(line, name)) {
      const isTimed = "commandTimeout" in options || "socketTimeout" in options;
      // The request has been carried out; its reply is lost.
      const lost = proxy.loseReplyTo(PAYLOAD, isTimed ? "swallow" : "cut");
      expectNoSecret(printed(await failureOf(call)));
      await lost;
      proxy.cut();
    }
    await line.close();
  }

  // Nobody listens there at all, and the client is closed while it waits.
  proxy.refuse();
  const line = newLineThatMayFail({ redis: { port, password }, unreachableTimeout: 50 });
  const failures = callsWith(line, uniqueName()).map(failureOf);
  await eventually(() => line.errors.length > 0);
  await line.close();
  for (const failure of failures) expectNoSecret(printed(await failure));
  for (const error of line.errors) expectNoSecret(printed(error));
});

test("refused and unknown commands show no secret", async () => {
  const server = await startOwnServer({
    args: ["--rename-command", "RPUSH", "", "--rename-command", "EVALSHA", ""],
  });
  const unknowing = newLineThatMayFail({ redis: server.url });
  await expectDiscreet(...callsWith(unknowing, uniqueName()));

  const other = await startOwnServer();
  const admin = newRedis(other.url);
  for (const command of ["eval", "rpush", "zadd", "time", "publish"]) {
    await admin.acl("SETUSER", command, "on", `>${PASSWORD}`, "~*", "&*", "+@all", `-${command}`);
    const redis = { port: other.port, username: command, password: PASSWORD };
    const line = newLine({ redis, transfer: false });
    await expectDiscreet(() => line.getDelayedQueue(uniqueName()).offer(PAYLOAD, 10));
  }
  // The error names the keys that may not be touched, but not the payloads.
  await admin.acl("SETUSER", "keys", "on", `>${PASSWORD}`, "~mine:*", "&*", "+@all");
  const line = newLineThatMayFail({
    redis: { port: other.port, username: "keys", password: PASSWORD },
  });
  await expectDiscreet(...callsWith(line, uniqueName()));
});

test("payloads that cannot be encoded never show", async () => {
  const line = newLine({ transfer: false });
  const name = uniqueName();
  const circular: Record<string, unknown> = { secret: PAYLOAD };
  circular["self"] = circular;
  const shout = {
    name: "shout",
    encode: () => PAYLOAD,
    decode: String,
  } as unknown as Codec;
  const offer = (codec: QueueOptions["codec"], payload: unknown) => () =>
    line.getDelayedQueue(name, { codec: codec as "json" }).offer(payload, 10);
  await expectDiscreet(
    offer("json", circular),
    offer("json", { ...circular, big: 1n }),
    offer("json", Symbol(PAYLOAD)),
    offer("json", () => PAYLOAD),
    offer("msgpack", circular),
    offer("msgpack", { secret: PAYLOAD, big: 2n ** 70n }),
    offer("msgpack", Symbol(PAYLOAD)),
    offer("msgpack", { [PAYLOAD]: Symbol(PAYLOAD) }),
    offer("string", `${PAYLOAD}\uD800`),
    offer("string", { secret: PAYLOAD }),
    offer("bytes", PAYLOAD),
    ...[new JsonJacksonCodec(), new MsgPackJacksonCodec()].flatMap((codec) => [
      offer(codec, circular),
      offer(codec, { secret: PAYLOAD, f: () => PAYLOAD }),
      offer(codec, { "@class": PAYLOAD }),
      offer(codec, new JavaValue(`${PAYLOAD} `, PAYLOAD)),
    ]),
    offer(new Kryo5Codec(), { secret: PAYLOAD }),
    offer(new LongCodec(), PAYLOAD),
    offer(shout, "x"),
  );
  const small = line.getDelayedQueue(uniqueName(), { maxPayloadBytes: 4 });
  await expectDiscreet(() => small.offer(PAYLOAD, 10));
});

/** What JavaScript may pass. */
function wrong(value: unknown): number {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return value as number;
}

test("wrong arguments show no payload", async () => {
  const line = newLine({ transfer: false });
  const queue = line.getDelayedQueue(uniqueName());
  await expectDiscreet(
    () => queue.offer(PAYLOAD, NaN),
    () => queue.offer(PAYLOAD, wrong(PAYLOAD)),
    () => queue.offerAt(PAYLOAD, wrong(PAYLOAD)),
    () => queue.offerMany([{ payload: PAYLOAD, delay: -1 }]),
    () => line.getBlockingQueue(uniqueName()).poll(wrong({ secret: PAYLOAD })),
  );
});

test("payloads that cannot be decoded never show", async () => {
  const codecs = [
    ["json", Buffer.from(PAYLOAD)],
    ["json", Buffer.from(`{"secret":"${PAYLOAD}`)],
    ["string", Buffer.concat([Buffer.from(PAYLOAD), Buffer.from([0xff])])],
    ["msgpack", Buffer.concat([Buffer.from([0xc1]), Buffer.from(PAYLOAD)])],
    ["msgpack", Buffer.concat([Buffer.from([0xd9, 0xff]), Buffer.from(PAYLOAD)])],
    [new JsonJacksonCodec(), Buffer.from(`["java.util.Date",1e99,"${PAYLOAD}`)],
    [new Kryo5Codec(), Buffer.concat([Buffer.from([1, 0]), Buffer.from(PAYLOAD), Buffer.of(0xf4)])],
  ] as const;
  for (const [codec, bytes] of codecs) {
    const name = uniqueName();
    const redis = newRedis();
    const line = newLineThatMayFail({ codec, transfer: false });
    const ready = line.getBlockingQueue(name);
    const delayed = line.getDelayedQueue(name);

    await redis.rpush(name, bytes, bytes, bytes);
    // One after the other: there is one message for each taker.
    await expectDiscreet(() => ready.peek());
    await expectDiscreet(() => ready.take());
    await expectDiscreet(() => ready.poll());
    await expectDiscreet(() => ready.poll(1000));
    await redis.rpush(name, bytes, bytes, bytes, bytes);
    await ready.readAll();
    await ready.takeMany({ limit: 1 });
    await ready.drain(1);
    await expectDiscreet(() => ready.pollFromAny([]));
    const subscription = ready.subscribe(() => {});
    const raw = newLine({ codec: "bytes", transfer: false }).getDelayedQueue<Uint8Array>(name);
    for (let i = 0; i < 4; i++) await raw.offer(bytes, 60_000);
    await expectDiscreet(() => delayed.insertionOrder.peek());
    await expectDiscreet(() => delayed.insertionOrder.poll());
    await delayed.insertionOrder.readAll();
    await delayed.insertionOrder.poll(1);
    await expectDiscreet(() => delayed.insertionOrder.pollLastAndOfferFirstTo(uniqueName()));
    await eventually(() => line.errors.length >= 6);
    await subscription.close();
    for (const error of line.errors) expectNoSecret(printed(error));
  }
});

test("poison never shows, not even in warnings without a listener", async () => {
  const name = uniqueName();
  const redis = newRedis();
  await redis.zadd(`redisson_delay_queue_timeout:{${name}}`, 1, PAYLOAD);
  await redis.rpush(name, PAYLOAD);
  await using line = new Delayline({ redis: redisUrl(), codec: "json" });
  await expectDiscreet(() => line.getBlockingQueue(name).take());
  // Its error events have no listener.
  await eventually(() => output.some((text) => text.includes("QuarantineError")));
  await redis.rpush(name, PAYLOAD);
  await line.getBlockingQueue(name).drain();
  await eventually(() => output.some((text) => text.includes("DecodeError")));
  await redis.del(name);
  await redis.set(`redisson_delay_queue_timeout:{${name}}`, PAYLOAD);
  await redis.publish(`redisson_delay_queue_channel:{${name}}`, "0");
  await eventually(() => output.some((text) => text.includes("WRONGTYPE")));
});

test("an inspected client, queue or subscription shows no password and no payload", async () => {
  const server = await startOwnServer({ args: ["--requirepass", PASSWORD] });
  const line = newLine({ redis: `redis://:${PASSWORD}@127.0.0.1:${server.port}` });
  const name = uniqueName();
  const delayed = line.getDelayedQueue(name);
  const offering = delayed.offer(PAYLOAD, 60_000);
  const ready = line.getBlockingQueue(name);
  for (const thing of [line, delayed, ready, ready.subscribe(() => {}), await offering]) {
    expectNoSecret(printed(thing));
  }
});
