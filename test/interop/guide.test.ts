import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { queueKeys } from "../../src/queue/keys.ts";
import { newAclUser } from "../helpers/acl-user.ts";
import { expectEachOnce } from "../helpers/ledger.ts";
import { newLine } from "../helpers/delayline.ts";
import { eventually } from "../helpers/eventually.ts";
import { newRedis, redisUrl, uniqueName } from "../helpers/redis.ts";
import { describeRedisson, NEWEST } from "./describe-redisson.ts";
import { java, type JavaValue } from "./java-value.ts";

// The statements of docs/redisson/guide.md for users who move from Java to Node.

const CODEC = "TypedJsonJacksonCodec";
const MINUTE = 60_000;

describeRedisson("the guide", (redisson) => {
  test("a destroyed handle still offers, and Node moves its messages", async () => {
    const name = uniqueName();
    const inJava = redisson().client.queue(name, CODEC);
    await inJava.delayed.construct();
    await inJava.delayed.stopMoving();
    const channel = await newRedis().pubsub("NUMSUB", queueKeys(name).channel);
    expect(channel[1]).toBe(0);
    await inJava.delayed.offer(java.string("message"), 100);

    const line = newLine({ codec: "json" });
    expect(await line.getBlockingQueue(name).take()).toBe("message");
    expect(await newRedis().exists(queueKeys(name).mover)).toBe(1);
  });

  test("Java's views of a queue that Node fills are as the guide says", async () => {
    const name = uniqueName();
    const { delayed } = redisson().client.queue(name, CODEC);
    await delayed.construct();
    await delayed.stopMoving();
    const line = newLine({ codec: "json", transfer: false });
    const queue = line.getDelayedQueue<string>(name);
    await queue.offer("a", MINUTE, { key: "a" });
    await delayed.offer(java.string("b"), MINUTE);
    await queue.offer("c", MINUTE);

    for (const view of [
      () => delayed.readAll(),
      () => delayed.iterate(),
      () => delayed.peek(),
      () => delayed.contains(java.string("b")),
      () => delayed.remove(java.string("b")),
      () => delayed.removeAll([java.string("b")]),
      () => delayed.retainAll([java.string("b")]),
      () => delayed.poll(),
    ]) {
      await expect(view()).rejects.toThrow("data string too short");
    }
    // poll() has removed "a" from the list, but not from delivery.
    expect(await queue.insertionOrder.readAll()).toEqual(["b", "c"]);
    expect((await queue.get("a"))?.payload).toBe("a");
    expect(await queue.size()).toBe(3);
    await queue.cancel("a");
    expect(await queue.insertionOrder.poll(2)).toEqual(["b", "c"]);
    expect(await queue.size()).toBe(0);
  });

  test("Java's remove and poll are wrong where Node moves with interop none, and right with redisson", async () => {
    for (const interop of ["none", "redisson"] as const) {
      const name = uniqueName();
      const { delayed } = redisson().client.queue(name, CODEC);
      await delayed.construct();
      await delayed.stopMoving();
      // All from Java: the list holds no address of Node's, so nothing fails.
      // Redisson does not keep the order of equal deadlines.
      await delayed.offer(java.string("a"), 50);
      await delayed.offer(java.string("b"), 60);
      await delayed.offer(java.string("later"), MINUTE);
      const consumer = newLine({ codec: "json", interop }).getBlockingQueue<string>(name);
      expect([await consumer.take(), await consumer.take()]).toEqual(["a", "b"]);

      const isLie = interop === "none";
      const shown = isLie ? ["a", "b", "later"] : ["later"];
      expect(await delayed.size()).toBe(shown.length);
      expect(await delayed.readAll()).toEqual(shown.map(java.string));
      expect(await delayed.remove(java.string("a"))).toBe(isLie);
      expect(await delayed.poll()).toEqual(java.string(isLie ? "b" : "later"));
    }
  });

  test("with transfer false beside Java, Java's remove and poll are right", async () => {
    const name = uniqueName();
    const { delayed } = redisson().client.queue(name, CODEC);
    await delayed.construct();
    for (const text of ["a", "b"]) await delayed.offer(java.string(text), 50);
    await delayed.offer(java.string("later"), MINUTE);
    const line = newLine({ codec: "json", transfer: false });
    const consumer = line.getBlockingQueue<string>(name);
    expect([await consumer.take(), await consumer.take()].toSorted()).toEqual(["a", "b"]);

    expect(await delayed.remove(java.string("a"))).toBe(false);
    expect(await delayed.poll()).toEqual(java.string("later"));
  });

  test("a Java take that cannot decode loses the message, and Node's keeps the bytes", async () => {
    const name = uniqueName();
    const { ready } = redisson().client.queue(name, CODEC);
    const redis = newRedis();
    const { quarantine } = queueKeys(name);
    await redis.rpush(name, "{not json");
    await expect(ready.take()).rejects.toThrow("Redisson:");
    expect(await redis.exists(name, quarantine)).toBe(0);

    await redis.rpush(name, "{not json");
    const taking = newLine({ codec: "json" }).getBlockingQueue(name).take();
    await expect(taking).rejects.toThrow("cannot decode");
    expect(await redis.lrange(quarantine, 0, -1)).toEqual(["{not json"]);
  });

  test("a Node consumer with the wrong codec puts every message into the quarantine", async () => {
    const name = uniqueName();
    const { delayed } = redisson().client.queue(name, CODEC);
    await delayed.construct();
    for (const text of ["a", "b"]) await delayed.offer(java.string(text), 0);
    const wrong = newLine({ codec: "msgpack" }).getBlockingQueue<string>(name);
    for (const _ of [1, 2]) await expect(wrong.take()).rejects.toThrow("cannot decode");

    // The way back out, by redis-cli.
    const redis = newRedis();
    const { quarantine } = queueKeys(name);
    expect(await redis.llen(quarantine)).toBe(2);
    for (const _ of [1, 2]) await redis.lmove(quarantine, name, "LEFT", "RIGHT");
    const right = newLine({ codec: "json" }).getBlockingQueue<string>(name);
    expect([await right.take(), await right.take()].toSorted()).toEqual(["a", "b"]);
  });

  test("Java's views with interop redisson are as the guide says", async () => {
    const name = uniqueName();
    const { delayed } = redisson().client.queue(name, CODEC);
    await delayed.construct();
    await delayed.stopMoving();
    const line = newLine({ codec: "json", transfer: false, interop: "redisson" });
    const queue = line.getDelayedQueue<string>(name);
    await queue.offer("a", MINUTE, { key: "a" });
    await delayed.offer(java.string("b"), MINUTE);
    for (const payload of ["c", "d", "e"]) await queue.offer(payload, MINUTE);

    expect(await delayed.size()).toBe(5);
    const values = ["a", "b", "c", "d", "e"].map(java.string);
    expect(await delayed.readAll()).toEqual(values);
    expect(await delayed.iterate()).toEqual(values);
    expect(await delayed.peek()).toEqual(java.string("a"));
    expect(await delayed.contains(java.string("c"))).toBe(true);
    expect(await delayed.remove(java.string("c"))).toBe(true);
    expect(await delayed.poll()).toEqual(java.string("a"));
    expect(await delayed.removeAll([java.string("d"), java.string("x")])).toBe(true);
    expect(await queue.insertionOrder.readAll()).toEqual(["b", "e"]);
    // Java removed the key's message, so the key is free.
    expect((await queue.offer("again", MINUTE, { key: "a" })).outcome).toBe("added");
    expect(await delayed.size()).toBe(await queue.size());
  });

  test("where Delayline is better on purpose, Redisson does what the conformance page says", async () => {
    const name = uniqueName();
    const { delayed, ready } = redisson().client.queue(name, CODEC);
    // retainAll delivers the messages it removed.
    await delayed.offerMany([java.string("keep"), java.string("drop")], [700, 600]);
    expect(await delayed.retainAll([java.string("keep")])).toBe(true);
    expect(await delayed.readAll()).toEqual([java.string("keep")]);
    expect(await ready.take()).toEqual(java.string("drop"));
    expect(await ready.take()).toEqual(java.string("keep"));
    // Nobody moves once the only handle is destroyed, although a consumer takes.
    await delayed.stopMoving();
    await delayed.offer(java.string("message"), 0);
    expect(await ready.pollFor(1)).toBe(null);
    // poll(0) waits.
    const polling = ready.pollFor(0);
    const redis = newRedis();
    await eventually(async () => / name= .* cmd=blpop /.test(String(await redis.client("LIST"))));
    await ready.put(java.string("awaited"));
    expect(await polling).toEqual(java.string("awaited"));
  });

  test("the access rules are enough for Java", async () => {
    const name = uniqueName();
    const url = await newUser(name);
    const client = await redisson().process.connect(url);
    onTestFinished(() => client.shutdown());
    const { delayed, ready } = client.queue(name, CODEC);
    const [a, b, c, d] = [java.string("a"), java.string("b"), java.string("c"), java.string("d")];

    await delayed.offer(a, 100);
    expect(await ready.take()).toEqual(a);
    await delayed.offerMany([a, b, c, d], [MINUTE, MINUTE, MINUTE, MINUTE]);
    expect(await delayed.size()).toBe(4);
    expect(await delayed.readAll()).toEqual(await delayed.iterate());
    expect(await delayed.contains(b)).toBe(true);
    expect(await delayed.peek()).toEqual(a);
    expect(await delayed.poll()).toEqual(a);
    expect(await delayed.pollMany(1)).toEqual([b]);
    expect(await delayed.remove(c)).toBe(true);
    expect(await delayed.retainAll([d])).toBe(false);
    expect(await delayed.removeAll([d])).toBe(true);
    await ready.put(a);
    expect(await ready.size()).toBe(1);
    expect(await ready.readAll()).toEqual([a]);
    expect(await ready.peek()).toEqual(a);
    expect(await ready.pollFor(1)).toEqual(a);
    expect(await ready.poll()).toBe(null);
    await delayed.destroy();
  });
});

describeRedisson(
  "moving from Java to Node without stopping, and back",
  (redisson) => {
    test.each(["none", "redisson"] as const)(
      "each step of the migration takes every message once, with interop %s",
      { timeout: 60_000 },
      async (interop) => {
        const name = uniqueName();
        const offered: string[] = [];
        const taken: string[] = [];
        const inJava = redisson().client.queue(name, CODEC);
        const producing = new AbortController();
        const failures: unknown[] = [];
        /** Offers and pauses briefly, again and again. */
        const produce = async (who: string, offer: (message: string, delay: number) => unknown) => {
          for (let i = 0; !producing.signal.aborted; i++) {
            const message = `${who} ${i}`;
            await offer(message, Math.floor(Math.random() * 300));
            offered.push(message);
            await sleep(3);
          }
        };
        const producers: Promise<unknown>[] = [];
        const start = (who: string, offer: (message: string, delay: number) => unknown) =>
          producers.push(produce(who, offer).catch((error: unknown) => failures.push(error)));
        /** Resolves when so many more messages have been taken by either side. */
        const more = async (count: number, takenByJava: boolean) => {
          const total = async () =>
            taken.length + (takenByJava ? await inJava.ready.takenCount() : 0);
          const before = await total();
          await eventually(async () => (await total()) >= before + count, { within: 20_000 });
        };

        // Only Java.
        start("Java", (message, delay) => inJava.delayed.offer(java.string(message), delay));
        await inJava.ready.startTaking(1);
        await more(50, true);
        // 1. Node takes, and moves nothing.
        const cautious = newLine({ codec: "json", interop, transfer: false });
        cautious.getBlockingQueue<string>(name).subscribe((message) => void taken.push(message));
        await more(50, true);
        expect(await newRedis().exists(queueKeys(name).mover)).toBe(0);
        await cautious.close();
        // 2. Node moves, too.
        const consumer = newLine({ codec: "json", interop });
        consumer.getBlockingQueue<string>(name).subscribe((message) => void taken.push(message));
        await more(50, true);
        await eventually(async () => (await newRedis().exists(queueKeys(name).mover)) === 1);
        expect(await movers(name)).toBe(2);
        // 3. Java no longer takes.
        taken.push(...(await inJava.ready.stopTaking()).map(textOf));
        await more(50, false);
        // 4. Java no longer moves.
        await inJava.delayed.stopMoving();
        await more(50, false);
        await eventually(async () => (await movers(name)) === 1);
        // 5. Node offers.
        const producer = newLine({ codec: "json", interop, transfer: false });
        const queue = producer.getDelayedQueue<string>(name);
        start("Node", (message, delay) => queue.offer(message, delay));
        await more(50, false);
        // And back: Java moves and takes, then Node stops doing so.
        const back = await redisson().process.connect(redisUrl());
        onTestFinished(() => back.shutdown());
        const { delayed, ready } = back.queue(name, CODEC);
        await delayed.construct();
        await ready.startTaking(1);
        await eventually(async () => (await ready.takenCount()) >= 50, { within: 20_000 });
        await consumer.close();
        const before = await ready.takenCount();
        await eventually(async () => (await ready.takenCount()) >= before + 50, { within: 20_000 });

        producing.abort();
        await Promise.all(producers);
        expect(failures).toEqual([]);
        const total = async () => taken.length + (await ready.takenCount());
        await eventually(async () => (await total()) >= offered.length, { within: 20_000 });
        taken.push(...(await ready.stopTaking()).map(textOf));
        expectEachOnce(offered, taken);
        expect(await queue.size()).toBe(0);
      },
    );
  },
  NEWEST,
);

/** A user with the rules of docs/operations/setting-up.md and the additions of docs/redisson/guide.md. Returns the URL. */
async function newUser(name: string): Promise<string> {
  const rulesIn = async (page: string, title: RegExp) => {
    const text = await readFile(new URL(`../../${page}`, import.meta.url), "utf8");
    const rules = /```\n(.*?)```/s.exec(text.slice(text.search(title)))?.[1];
    return String(rules).replaceAll("orders", name).trim().split(/\s+/);
  };
  const rules = [
    ...(await rulesIn("docs/operations/setting-up.md", /^## Access rules/m)),
    ...(await rulesIn("docs/redisson/guide.md", /^## Access rules/m)),
  ];
  const { url } = await newAclUser(newRedis(), rules);
  return url.href;
}

/** How many processes move a queue: each of them subscribes. */
async function movers(name: string): Promise<number> {
  const [, count] = await newRedis().pubsub("NUMSUB", queueKeys(name).channel);
  return Number(count);
}

function textOf(value: JavaValue): string {
  return value !== null && "string" in value ? value.string : "";
}
