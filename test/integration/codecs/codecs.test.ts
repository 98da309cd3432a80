import { beforeEach, describe, expect, test } from "vitest";
import { DecodeError, type Codec, type CodecName } from "../../../src/index.ts";
import { JsonJacksonCodec, Kryo5Codec } from "../../../src/adapters/redisson/index.ts";
import { newLine } from "../../helpers/delayline.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";

// Payloads on their way through Redis and back.

const MINUTE = 60_000;

let name: string;

beforeEach(() => {
  name = uniqueName("codec");
});

const order = { id: 7, lines: [{ sku: "é😀", count: 2 }], paid: false, note: null };

/** All ways to get a payload back. */
async function throughRedis(codec: CodecName | Codec, payload: unknown) {
  const line = newLine();
  const delayed = line.getDelayedQueue(name, { codec });
  const ready = line.getBlockingQueue(name, { codec });
  await delayed.offer(payload, MINUTE);
  const peeked = await delayed.insertionOrder.peek();
  const [read] = await delayed.insertionOrder.readAll();
  const polled = await delayed.insertionOrder.poll();
  await delayed.offer(payload, 0);
  const taken = await ready.take();
  await ready.putMany([payload, payload]);
  const [popped] = await ready.drain(1);
  return [peeked, read, polled, taken, popped, await ready.poll()];
}

describe("payloads come back unchanged", () => {
  const payloads: [string, CodecName, unknown][] = [
    ["an object", "msgpack", order],
    ["an object", "json", order],
    [
      "a date and bytes",
      "msgpack",
      { at: new Date(1_755_757_960_123), raw: Buffer.from([0, 255]) },
    ],
    ["a text", "string", "é😀\0"],
    ["an empty text", "string", ""],
    ["an empty text", "json", ""],
    ["zero", "msgpack", 0],
    ["false", "json", false],
    ["bytes", "bytes", Buffer.from([0, 255, 128])],
    ["no bytes", "bytes", Buffer.alloc(0)],
  ];
  test.each(payloads)("%s, as %s", async (_, codec, payload) => {
    for (const received of await throughRedis(codec, payload)) expect(received).toEqual(payload);
  });

  test.each(["msgpack", "json"] as const)(
    "null and undefined come back as null, which differs from 'no message', as %s",
    async (codec) => {
      for (const payload of [null, undefined]) {
        for (const received of await throughRedis(codec, payload)) expect(received).toBeNull();
      }
      const line = newLine({ codec });
      expect(await line.getBlockingQueue(name).poll()).toBeUndefined();
      expect(await line.getDelayedQueue(name).insertionOrder.poll()).toBeUndefined();
    },
  );

  test("null can be found and removed", async () => {
    const queue = newLine({ transfer: false }).getDelayedQueue(name);
    await queue.offerMany([null, 0, undefined].map((payload) => ({ payload, delay: MINUTE })));
    expect(await queue.insertionOrder.contains(null)).toBe(true);
    expect(await queue.insertionOrder.remove(undefined)).toBe(true);
    expect(await queue.insertionOrder.removeAll([null])).toBe(1);
    expect(await queue.insertionOrder.readAll()).toEqual([0]);
  });
});

describe("a codec", () => {
  const reversed: Codec<string> = {
    name: "reversed",
    encode: (text) => new Uint8Array(Buffer.from(text)).toReversed(),
    decode: (raw) => Buffer.from(raw.toReversed()).toString(),
  };

  test("may be the user's own, whose bytes are stored in Redis", async () => {
    const ready = newLine().getBlockingQueue(name, { codec: reversed });
    await ready.put("abc");
    expect(await newRedis().lrange(name, 0, -1)).toEqual(["cba"]);
    expect(await ready.take()).toBe("abc");
  });

  test("that is a class can use its own fields", async () => {
    class Prefixed implements Codec<string> {
      readonly name = "prefixed";
      readonly #prefix = "p:";
      encode(text: string) {
        return Buffer.from(this.#prefix + text);
      }
      decode(raw: Buffer) {
        return raw.toString().slice(this.#prefix.length);
      }
    }
    const ready = newLine().getBlockingQueue(name, { codec: new Prefixed() });
    await ready.put("abc");
    expect(await ready.take()).toBe("abc");
  });

  test("of the client applies to queues that name no other", async () => {
    const line = newLine({ codec: "json", transfer: false });
    const redis = newRedis();
    await line.getBlockingQueue(name).put({ a: 1 });
    await line.getBlockingQueue(name, {}).put({ a: 2 });
    expect(await redis.lrange(name, 0, -1)).toEqual(['{"a":1}', '{"a":2}']);
    const other = uniqueName();
    await line.getBlockingQueue<string>(other, { codec: "string" }).put("text");
    expect(await redis.lrange(other, 0, -1)).toEqual(["text"]);
  });

  test("belongs to a client and a queue: another client may read the bytes as text", async () => {
    const asJson = newLine({ transfer: false }).getDelayedQueue(name, { codec: "json" });
    const asText = newLine({ transfer: false }).getDelayedQueue<string>(name, { codec: "string" });
    await asJson.offer({ a: 1 }, MINUTE);
    expect(await asText.insertionOrder.readAll()).toEqual(['{"a":1}']);
    expect(await asText.insertionOrder.remove('{"a":1}')).toBe(true);
  });

  test("defaults to msgpack", async () => {
    await newLine({ transfer: false }).getBlockingQueue(name).put({ a: 1 });
    const [bytes] = await newRedis().lrangeBuffer(name, 0, -1);
    expect(bytes?.toString("hex")).toBe("81a16101");
  });
});

test("received bytes belong to the receiver, who may change them", async () => {
  const ready = newLine({ codec: "bytes" }).getBlockingQueue<Buffer>(name);
  await ready.putMany([Buffer.from("aaa"), Buffer.from("bbb")]);
  const [first, second] = await ready.drain();
  first?.fill(0);
  expect(second).toEqual(Buffer.from("bbb"));
  await ready.put(Buffer.from("ccc"));
  const received = await ready.take();
  await ready.putMany(Array.from({ length: 50 }, () => Buffer.alloc(5000, "x")));
  await ready.readAll();
  expect(received).toEqual(Buffer.from("ccc"));
});

describe("Redisson's codecs", () => {
  test("carry payloads through Redis, and recognise each other's bytes", async () => {
    const codec = new JsonJacksonCodec<{ total: number | bigint; at: Date }>();
    const payload = { total: 2n ** 60n, at: new Date(1_755_757_960_123) };
    for (const received of await throughRedis(codec, payload)) expect(received).toEqual(payload);

    const queue = newLine({ transfer: false }).getDelayedQueue(name, { codec });
    await queue.offer(payload, MINUTE);
    expect(await queue.insertionOrder.contains({ ...payload })).toBe(true);
    expect(await queue.insertionOrder.remove({ ...payload, total: 5 })).toBe(false);
    expect(await queue.insertionOrder.remove({ ...payload })).toBe(true);
  });

  test("name the remedy for a Kryo object, and keep its bytes", async () => {
    const redis = newRedis();
    const ready = newLine().getBlockingQueue(name, { codec: new Kryo5Codec() });
    const map = Buffer.from("01006a6176612e7574696c2e486173684d61f0020382610202", "hex");
    await redis.rpush(name, map);
    const error: unknown = await ready.take().catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(DecodeError);
    expect((error as DecodeError).message).toContain(
      "for objects use TypedJsonJacksonCodec in Java",
    );
    expect((error as DecodeError).bytes).toEqual(map);
  });
});
