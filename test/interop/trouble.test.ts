import { expect, onTestFinished, test } from "vitest";
import { QuarantineError } from "../../src/index.ts";
import { queueKeys } from "../../src/queue/keys.ts";
import { expectEachOnce, missing } from "../helpers/ledger.ts";
import { newLine, newLineThatMayFail } from "../helpers/delayline.ts";
import { eventually } from "../helpers/eventually.ts";
import { startOwnServer } from "../helpers/own-server.ts";
import { newRedis, redisUrl, uniqueName } from "../helpers/redis.ts";
import { describeRedisson } from "./describe-redisson.ts";
import { java, type JavaValue } from "./java-value.ts";
import { RedissonProcess } from "./redisson.ts";
import { upTo } from "../helpers/numbers.ts";

// Java clients come and go, Redis restarts, and a queue holds unreadable bytes.

const CODEC = "TypedJsonJacksonCodec";
const MINUTE = 60_000;

describeRedisson("trouble", (redisson) => {
  test("Java clients join, destroy their queue and die, and nothing is lost or duplicated", async () => {
    const name = uniqueName();
    const count = 1000;
    const mortal = await RedissonProcess.start(redisson().version);
    onTestFinished(() => mortal.kill());
    const dying = await mortal.connect(redisUrl());

    const line = newLine({ codec: "json" });
    const taken: number[] = [];
    line.getBlockingQueue<number>(name).subscribe((number) => void taken.push(number));
    const offers = upTo(count).map((i) => ({ payload: i, delay: 300 + i * 3 }));
    await line.getDelayedQueue<number>(name).offerMany(offers);

    const until = (share: number) => eventually(() => taken.length >= share * count);
    await until(0.1);
    const { delayed } = redisson().client.queue(name, CODEC);
    await delayed.construct();
    await until(0.3);
    await delayed.destroy();
    await until(0.4);
    await dying.queue(name, CODEC).delayed.construct();
    await until(0.6);
    await mortal.kill();
    await until(0.7);
    await delayed.construct();
    await until(1);
    expectEachOnce(upTo(count), taken);
    await delayed.destroy();
  });

  test("after a restart of Redis both sides go on with the stored messages", async () => {
    const server = await startOwnServer({ appendOnly: true });
    const name = uniqueName();
    const client = await redisson().process.connect(server.url);
    const inJava = client.queue(name, CODEC);
    // It reports that Redis was away.
    const line = newLineThatMayFail({ codec: "json", redis: server.url });
    const delayed = line.getDelayedQueue<number>(name);
    const delays = upTo(100).map((i) => 1000 + 20 * i);
    await delayed.offerMany(delays.map((delay, i) => ({ payload: i, delay })));
    await inJava.delayed.offerMany(
      delays.map((_, i) => java.int(100 + i)),
      delays,
    );
    await server.kill();
    await server.restart();

    const taken: number[] = [];
    const ready = line.getBlockingQueue<number>(name);
    while (taken.length < 200) taken.push(await ready.take());
    expectEachOnce(upTo(200), taken);

    const hasAnswered = async () => void (await inJava.delayed.size());
    await eventually(hasAnswered, { within: 20_000, what: "Java has connected again" });
    await inJava.delayed.offer(java.string("from Java"), 10);
    expect(await ready.take()).toBe("from Java");
    await line.close();
    const offering = newLine({ codec: "json", redis: server.url, transfer: false });
    await offering.getDelayedQueue(name).offer("from Node", 10);
    expect(await inJava.ready.pollFor(10)).toEqual(java.string("from Node"));
    await client.shutdown();
  });

  test("an unreadable member stops Java until Node puts it aside", async () => {
    const server = await startOwnServer();
    const name = uniqueName();
    const keys = queueKeys(name);
    const redis = newRedis(server.url);
    await redis.zadd(keys.timeouts, 1, "poison");
    const client = await redisson().process.connect(server.url);
    const inJava = client.queue(name, CODEC);
    await inJava.delayed.offerMany(upTo(50).map(java.int), upTo(50));
    // Redisson's script fails at its first member, every time.
    await eventually(async () => /errorstat_(?!NOSCRIPT)/.test(await redis.info("errorstats")));
    expect(await redis.zcard(keys.timeouts)).toBe(51);

    const line = newLineThatMayFail({ codec: "json", redis: server.url });
    const ready = line.getBlockingQueue<number>(name);
    const taken: number[] = [];
    while (taken.length < 50) taken.push(await ready.take());
    expectEachOnce(upTo(50), taken);
    expect(await redis.lrange(keys.unreadable, 0, -1)).toEqual(["poison"]);
    expect(line.errors).toEqual([expect.any(QuarantineError)]);
    // Java goes on as well.
    await line.close();
    await inJava.delayed.offer(java.string("next"), 10);
    expect(await inJava.ready.pollFor(10)).toEqual(java.string("next"));
    await client.shutdown();
  });

  test("poison among good messages while both sides move: nothing is lost", async () => {
    const name = uniqueName();
    const keys = queueKeys(name);
    const inJava = redisson().client.queue(name, CODEC);
    await inJava.delayed.construct();
    const line = newLineThatMayFail({ codec: "json" });
    const taken: number[] = [];
    line.getBlockingQueue<number>(name).subscribe((number) => void taken.push(number));
    const at = Date.now() + 500;
    await newRedis().zadd(keys.timeouts, at + 100, "poison 1", at + 200, "poison 2");
    const offers = upTo(300).map((i) =>
      line.getDelayedQueue<number>(name).offerAt(i, new Date(at + i)),
    );
    await Promise.all(offers);
    await eventually(() => missing(upTo(300), taken).length === 0, { within: 20_000 });
    // Where Redisson's script meets poison, it has pushed the messages before it, and will push them again.
    expect(missing(taken, upTo(300))).toEqual([]);
    await eventually(async () => (await newRedis().zcard(keys.timeouts)) === 0);
    expect(await newRedis().lrange(keys.unreadable, 0, -1)).toEqual(["poison 1", "poison 2"]);
    await inJava.delayed.destroy();
  });

  test("Java reads the ready messages, and puts some back", async () => {
    const name = uniqueName();
    const line = newLine({ codec: "json" });
    const ready = line.getBlockingQueue(name);
    const values: JavaValue[] = ["a", "b", "c"].map(java.string);
    await ready.putMany(["a", "b", "c"]);
    const inJava = redisson().client.queue(name, CODEC);
    expect(await inJava.ready.readAll()).toEqual(values);
    expect(await inJava.ready.contains(java.string("b"))).toBe(true);
    expect(await inJava.ready.remove(java.string("b"))).toBe(true);
    await inJava.ready.put(java.string("d"));
    expect(await ready.readAll()).toEqual(["a", "c", "d"]);
    await line.getDelayedQueue(name).offer("later", MINUTE);
    expect(await inJava.ready.size()).toBe(3);
  });
});
