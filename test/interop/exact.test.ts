import { expect, test } from "vitest";
import { newLine } from "../helpers/delayline.ts";
import { eventually } from "../helpers/eventually.ts";
import { uniqueName } from "../helpers/redis.ts";
import { describeRedisson, type RunningRedisson } from "./describe-redisson.ts";
import { java } from "./java-value.ts";

// With `interop: "redisson"`, Redisson's own views are right on a queue that Node fills and moves.

const MINUTE = 60_000;

/** A queue that only Node moves: Java only reads. */
function sharedQueue({ client }: RunningRedisson) {
  const name = uniqueName();
  const line = newLine({ codec: "json", interop: "redisson" });
  return {
    queue: line.getDelayedQueue(name),
    ready: line.getBlockingQueue(name),
    inJava: client.queue(name, "TypedJsonJacksonCodec").delayed,
  };
}

const strings = (texts: string) => texts.split("").map(java.string);

describeRedisson("an exact insertion order", (redisson) => {
  test("Java reads Node's messages: size, readAll, iterator, peek, contains", async () => {
    const { queue, inJava } = sharedQueue(redisson());
    await queue.offer("c", 3 * MINUTE);
    await queue.offer("a", MINUTE, { key: "a key" });
    await queue.offerMany("bd".split("").map((payload) => ({ payload, delay: 2 * MINUTE })));
    expect(await inJava.size()).toBe(4);
    expect(await inJava.readAll()).toEqual(strings("cabd"));
    expect(await inJava.iterate()).toEqual(strings("cabd"));
    expect(await inJava.peek()).toEqual(java.string("c"));
    expect(await inJava.contains(java.string("a"))).toBe(true);
    expect(await inJava.contains(java.string("x"))).toBe(false);
    await inJava.destroy();
  });

  test("Java removes Node's messages: poll, poll(limit), remove, removeAll, retainAll", async () => {
    const { queue, ready, inJava } = sharedQueue(redisson());
    const offers = "abcdefgh".split("").map((payload) => ({
      payload,
      delay: 300,
      key: `key ${payload}`,
    }));
    await queue.offerMany(offers);
    expect(await inJava.poll()).toEqual(java.string("a"));
    expect(await inJava.remove(java.string("c"))).toBe(true);
    expect(await inJava.remove(java.string("c"))).toBe(false);
    expect(await inJava.pollMany(2)).toEqual(strings("bd"));
    expect(await inJava.removeAll([java.string("f")])).toBe(true);
    expect(await queue.insertionOrder.readAll()).toEqual("egh".split(""));
    expect(await inJava.retainAll(strings("eg"))).toBe(true);
    expect(await inJava.readAll()).toEqual(strings("eg"));
    expect(await queue.cancel("key a")).toBe(false);
    expect(await ready.take()).toBe("e");
    expect(await ready.take()).toBe("g");
    // Redisson's retainAll removes a message from the LIST only: it is delivered all the same.
    expect(await ready.take()).toBe("h");
    expect(await ready.poll(200)).toBeUndefined();
    expect(await inJava.size()).toBe(0);
    await inJava.destroy();
  });

  test("Java sees at once what Node removes, changes and moves", async () => {
    const { queue, ready, inJava } = sharedQueue(redisson());
    const offers = "abcdefghijkl".split("").map((payload) => ({
      payload,
      delay: MINUTE,
      key: payload + 1,
    }));
    await queue.offerMany(offers);
    await queue.cancelMany(["b1", "d1"]);
    expect(await inJava.readAll()).toEqual(strings("acefghijkl"));
    await queue.insertionOrder.remove("f");
    await queue.insertionOrder.removeAll(["h", "j"]);
    expect(await inJava.readAll()).toEqual(strings("acegikl"));
    expect(await queue.insertionOrder.poll()).toBe("a");
    expect(await queue.insertionOrder.pollLastAndOfferFirstTo(uniqueName())).toBe("l");
    expect(await inJava.readAll()).toEqual(strings("cegik"));
    await queue.reschedule("e1", 2 * MINUTE);
    expect(await inJava.readAll()).toEqual(strings("cgike"));
    await queue.offer("G", MINUTE, { key: "g1", onDuplicate: "replace" });
    expect(await inJava.readAll()).toEqual(strings("cikeG"));
    await queue.reschedule("i1", 0);
    expect(await ready.take()).toBe("i");
    expect(await inJava.readAll()).toEqual(strings("ckeG"));
    await queue.clear();
    expect(await inJava.size()).toBe(0);
    expect(await inJava.peek()).toBeNull();
    await inJava.destroy();
  });

  test("while a crowd with random deadlines drains, both sides see the same", async () => {
    const { queue, ready, inJava } = sharedQueue(redisson());
    const delays = Array.from({ length: 1500 }, () => Math.floor(Math.random() * 1500));
    const stay = [5, 700, 1400];
    const delayOf = (i: number) => (stay.includes(i) ? MINUTE : delays[i]!);
    // A third is Java's; Node cannot know where these stand in the LIST.
    await queue.offerMany(delays.slice(0, 1000).map((_, i) => ({ payload: i, delay: delayOf(i) })));
    await inJava.offerMany(
      delays.slice(1000).map((_, i) => java.int(1000 + i)),
      delays.slice(1000).map((_, i) => delayOf(1000 + i)),
    );
    // From here on only Node moves.
    await inJava.destroy();
    const taken: unknown[] = [];
    while (taken.length < 1497) taken.push(...(await ready.takeMany({ limit: 100 })));
    expect(new Set(taken).size).toBe(1497);
    await eventually(async () => (await queue.size()) === 3);
    expect(await inJava.readAll()).toEqual(stay.map(java.int));
    expect(await queue.insertionOrder.readAll()).toEqual(stay);
    expect(await inJava.poll()).toEqual(java.int(5));
    expect(await queue.insertionOrder.readAll()).toEqual([700, 1400]);
    await inJava.destroy();
  });
});
