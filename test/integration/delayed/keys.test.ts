import { describe, expect, it } from "vitest";
import { queueKeys } from "../../../src/queue/keys.ts";
import { offerKeyed } from "../../../src/lua/delayed/offer-keyed.ts";
import { run } from "../../../src/lua/script.ts";
import { tidyBusinessKeys } from "../../../src/lua/delayed/tidy.ts";
import { createId, packMember } from "../../../src/queue/message/message.ts";
import type { MessageId, OfferOptions } from "../../../src/index.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";

const LONG = 3_600_000;

function openWith(interop: "none" | "redisson") {
  const name = uniqueName("keyed");
  const line = newLine({ interop });
  return {
    name,
    line,
    keys: queueKeys(name),
    delayed: line.getDelayedQueue<string>(name),
    ready: line.getBlockingQueue<string>(name),
    redis: newRedis(),
  };
}

for (const interop of ["none", "redisson"] as const) {
  describe(`business keys, interop "${interop}"`, () => {
    it("finds a message by its key or its id, and no other", async () => {
      const { delayed } = openWith(interop);
      await delayed.offer("other", LONG, { key: "order:1" });
      const { id, deadline, outcome } = await delayed.offer("mine", LONG, { key: "order:42" });
      expect(outcome).toBe("added");
      const message = { id, deadline, payload: "mine", key: "order:42" };
      expect(await delayed.get("order:42")).toEqual(message);
      expect(await delayed.get(id)).toEqual(message);
      expect(await delayed.has("order:42")).toBe(true);
      expect(await delayed.has("order:4")).toBe(false);
      expect(await delayed.get("order:43")).toBeUndefined();
      const plain = await delayed.offer("plain", LONG);
      expect((await delayed.get(plain.id))?.key).toBeUndefined();
      const all = [];
      for await (const { key } of delayed.insertionOrder) all.push(key);
      expect(all).toEqual(["order:1", "order:42", undefined]);
    });

    it("cancels by key or id, returns an exact verdict, and leaves no key behind", async () => {
      const { delayed, ready, keys, redis } = openWith(interop);
      const first = await delayed.offer("a", LONG, { key: "k" });
      expect(await delayed.cancel("k")).toBe(true);
      expect(await delayed.cancel("k")).toBe(false);
      expect(await delayed.cancel(first.id)).toBe(false);
      const second = await delayed.offer("b", LONG, { key: "k" });
      expect(second.outcome).toBe("added");
      expect(await delayed.cancel(second.id)).toBe(true);
      expect(await delayed.has("k")).toBe(false);
      expect(await redis.exists(keys.businessKeys)).toBe(0);
      expect(await delayed.size()).toBe(0);

      await delayed.offer("due", 0, { key: "k" });
      expect(await ready.take()).toBe("due");
      expect(await delayed.cancel("k")).toBe(false);
      expect(await redis.exists(keys.businessKeys)).toBe(0);
    });

    it("cancels many, by ids and keys together, and returns verdicts in their order", async () => {
      const { delayed } = openWith(interop);
      const offers = await delayed.offerMany(
        Array.from({ length: 250 }, (_, i) => ({
          payload: `p${i}`,
          delay: LONG,
          ...(i % 2 ? { key: `key-${i}` } : {}),
        })),
      );
      const targets = offers.map(({ id }, i): string => (i % 2 ? `key-${i}` : id));
      const unknown = "nobody";
      const answers = await delayed.cancelMany([unknown, ...targets.slice(0, 200)]);
      expect(answers).toEqual([false, ...Array(200).fill(true)]);
      expect(await delayed.size()).toBe(50);
      expect(await delayed.insertionOrder.readAll()).toEqual(
        Array.from({ length: 50 }, (_, i) => `p${i + 200}`),
      );
    });

    it("cancels a message once, however often one call names it", async () => {
      const { delayed, redis, keys } = openWith(interop);
      const { id } = await delayed.offer("a", LONG, { key: "a" });
      await delayed.offer("b", LONG, { key: "b" });
      const once = [delayed.cancel("a"), delayed.cancel("b"), delayed.cancel("a")];
      expect(await Promise.all(once)).toEqual([true, true, false]);
      expect(await delayed.cancelMany([id, id])).toEqual([false, false]);
      const { id: other } = await delayed.offer("c", LONG, { key: "c" });
      expect((await delayed.cancelMany([other, "c", other])).filter(Boolean)).toEqual([true]);
      expect(await delayed.size()).toBe(0);
      expect(await redis.exists(keys.businessKeys)).toBe(0);
    });

    it("rejects, replaces or keeps when a key is delayed", async () => {
      const { delayed } = openWith(interop);
      const first = await delayed.offer("one", LONG, { key: "k" });

      expect(await delayed.offer("two", 5, { key: "k" })).toEqual({
        ...first,
        outcome: "existing",
      });
      expect((await delayed.get("k"))?.payload).toBe("one");

      const kept = await delayed.offer("three", 5, { key: "k", onDuplicate: "update" });
      expect(kept).toMatchObject({ deadline: first.deadline, outcome: "updated" });
      expect(kept.id).not.toBe(first.id);
      expect(await delayed.get("k")).toMatchObject({ id: kept.id, payload: "three" });
      expect(await delayed.get(first.id)).toBeUndefined();

      const replaced = await delayed.offer("four", 2 * LONG, { key: "k", onDuplicate: "replace" });
      expect(replaced.outcome).toBe("replaced");
      expect(replaced.deadline).toBeGreaterThanOrEqual(first.deadline + LONG);
      expect(await delayed.insertionOrder.readAll()).toEqual(["four"]);
      expect(await delayed.size()).toBe(1);
    });

    it("applies onDuplicate within one turn and within one offerMany", async () => {
      const { delayed } = openWith(interop);
      const results = await delayed.offerMany([
        { payload: "a", delay: LONG, key: "k" },
        { payload: "plain", delay: LONG },
        { payload: "b", delay: LONG, key: "k" },
        { payload: "c", delay: LONG, key: "k", onDuplicate: "replace" },
        { payload: "d", delay: 1, key: "k", onDuplicate: "update" },
      ]);
      expect(results.map(({ outcome }) => outcome)).toEqual([
        "added",
        "added",
        "existing",
        "replaced",
        "updated",
      ]);
      expect(results[2]?.id).toBe(results[0]?.id);
      expect((await delayed.insertionOrder.readAll()).toSorted()).toEqual(["d", "plain"]);
      expect((await delayed.get("k"))?.deadline).toBe(results[3]?.deadline);
    });

    it("reschedules by key or id: an earlier deadline wakes at once, a later one is not delivered early", async () => {
      const { delayed, ready, line } = openWith(interop);
      const { id } = await delayed.offer("sooner", LONG, { key: "k" });
      const later = await delayed.offer("later", 30);
      const moved = await delayed.reschedule(later.id, LONG);
      expect(moved?.deadline).toBeGreaterThan(later.deadline);
      expect(await delayed.get(later.id)).toBeUndefined();
      expect((await delayed.get(moved?.id as MessageId))?.payload).toBe("later");

      const due = await delayed.reschedule("k", 20);
      expect(await delayed.get(id)).toBeUndefined();
      expect(await delayed.get("k")).toMatchObject({ id: due?.id, payload: "sooner", key: "k" });
      expect(await ready.take()).toBe("sooner");
      expect(await line.serverTime()).toBeGreaterThan(due?.deadline as number);
      expect(await delayed.has("k")).toBe(false);
      expect(await delayed.reschedule("k", 20)).toBeUndefined();
      expect(await delayed.insertionOrder.readAll()).toEqual(["later"]);
    });

    it("lists a message once that is rescheduled to its own deadline", async () => {
      const { delayed, keys, redis } = openWith(interop);
      const count = 20;
      for (let i = 1; i <= count; i++) {
        const { id, deadline } = await delayed.offer(`m${i}`, LONG, { key: `k${i}` });
        const moved = await delayed.rescheduleAt(i % 2 ? id : `k${i}`, deadline);
        expect(moved).toMatchObject({ id, deadline });
        expect((await delayed.get(id))?.key).toBe(`k${i}`);
      }
      const listed = [];
      for await (const { payload } of delayed.insertionOrder) listed.push(payload);
      expect(listed).toEqual(Array.from({ length: count }, (_, i) => `m${i + 1}`));
      if (interop === "redisson") expect(await redis.llen(keys.order)).toBe(count);
    });

    it("delivers an endlessly replaced message within maxWait", async () => {
      const { delayed, line, ready } = openWith(interop);
      const options = {
        key: "k",
        onDuplicate: "replace",
        maxWait: 1200,
      } as const satisfies OfferOptions;
      const first = await delayed.offer("0", 600, options);
      const offeredBy = await line.serverTime();
      let count = 0;
      let deadline = first.deadline;
      const taking = ready.take();
      let isTaken = false;
      void taking.then(() => (isTaken = true));
      await eventually(async () => {
        if (isTaken) return true;
        const result = await delayed.offer(String(++count), 600, options);
        if (result.outcome === "replaced") deadline = Math.max(deadline, result.deadline);
        return false;
      });
      expect(deadline).toBeLessThanOrEqual(offeredBy + 1200 + 1);
      expect(deadline).toBeGreaterThan(first.deadline);
      expect(Number(await taking)).toBeGreaterThan(0);
    });

    it("counts maxWait from the first offer of the key, whatever came between", async () => {
      const { delayed, line } = openWith(interop);
      const waiting = { onDuplicate: "replace", maxWait: LONG } as const;
      const pass = async (milliseconds: number) => {
        const end = (await line.serverTime()) + milliseconds;
        await eventually(async () => (await line.serverTime()) > end);
      };
      // How the key is first offered, and what happens before it is offered with maxWait again.
      const firsts: OfferOptions[] = [{}, { onDuplicate: "update" }, waiting];
      const between: ((key: string) => Promise<unknown>)[] = [
        async () => {},
        (key) => delayed.offer("later", 2 * LONG, { key, onDuplicate: "replace" }),
        (key) => delayed.offer("kept", 2 * LONG, { key, onDuplicate: "update" }),
        (key) => delayed.reschedule(key, 2 * LONG),
        (key) => delayed.offer("in vain", 2 * LONG, { key }),
      ];
      const keys = firsts.flatMap((first, i) =>
        between.map((happens, k) => ({ key: `${i}.${k}`, first, happens })),
      );
      const deadlines = new Map<string, number>();
      for (const { key, first } of keys) {
        deadlines.set(key, (await delayed.offer("first", LONG, { key, ...first })).deadline);
      }
      for (let times = 0; times < 2; times++) {
        await pass(500);
        for (const { key, happens } of keys) await happens(key);
        await pass(500);
        for (const { key } of keys) {
          const last = await delayed.offer("last", 2 * LONG, { key, ...waiting });
          expect(last.outcome).toBe("replaced");
          // The first id has the producer's estimate of the server's clock, good to some milliseconds. Any other
          // starting point would add 500 ms.
          expect(Math.abs(last.deadline - deadlines.get(key)!), key).toBeLessThan(450);
        }
      }
    });

    it("restarts maxWait when the key has been free", async () => {
      const { delayed, line } = openWith(interop);
      const options = { key: "k", onDuplicate: "replace", maxWait: LONG } as const;
      const first = await delayed.offer("first", 2 * LONG, options);
      await eventually(async () => (await line.serverTime()) > first.deadline - LONG + 60);
      await delayed.cancel("k");
      const second = await delayed.offer("second", 2 * LONG, options);
      expect(second.outcome).toBe("added");
      expect(second.deadline).toBeGreaterThan(first.deadline + 50);
    });

    it("lists and cancels by prefix, and takes the special characters of a pattern literally", async () => {
      const { delayed } = openWith(interop);
      const names = Array.from({ length: 700 }, (_, i) => `app1:trans:notice:${i}`);
      await delayed.offerMany(
        [...names, "app1:trans:other:1", "app1:*:x", "app1:[a]:y"].map((key) => ({
          payload: key,
          delay: LONG,
          key,
        })),
      );
      const prefix = "app1:trans:notice:";
      const dry = await delayed.cancelWhere({ prefix }, { dryRun: true });
      expect(dry.count).toBe(700);
      expect(dry.keys.toSorted()).toEqual(names.toSorted());
      expect(await delayed.size()).toBe(703);
      expect((await delayed.cancelWhere({ prefix: "app1:*" })).keys).toEqual(["app1:*:x"]);
      expect((await delayed.cancelWhere({ prefix: "app1:[a]" })).keys).toEqual(["app1:[a]:y"]);
      const pages: (readonly string[])[] = [];
      const onKeys = (page: readonly string[]) => void pages.push(page);
      expect((await delayed.cancelWhere({ prefix }, { onKeys })).count).toBe(700);
      expect(pages.flat().toSorted()).toEqual(names.toSorted());
      expect(pages.length).toBeGreaterThan(1);
      expect(await delayed.insertionOrder.readAll()).toEqual(["app1:trans:other:1"]);
      await expect(delayed.cancelWhere({ prefix: "" })).rejects.toThrow(TypeError);
    });

    it("returns a thousand keys at most, and cancels no more once onKeys fails", async () => {
      const { delayed } = openWith(interop);
      const names = Array.from({ length: 2500 }, (_, i) => `many:${i}`);
      await delayed.offerMany(names.map((key) => ({ payload: key, delay: LONG, key })));
      const told = new Set<string>();
      const onKeys = (page: readonly string[]) => page.forEach((key) => told.add(key));
      const dry = await delayed.cancelWhere({ prefix: "many:" }, { dryRun: true, onKeys });
      expect(dry.count).toBe(2500);
      expect(dry.keys).toHaveLength(1000);
      expect(told).toEqual(new Set(names));
      const failed = delayed.cancelWhere(
        { prefix: "many:" },
        { onKeys: () => Promise.reject(new Error("disk full")) },
      );
      await expect(failed).rejects.toThrow("disk full");
      expect(await delayed.size()).toBeGreaterThan(1000);
    });

    it("leaves no key behind, whichever way a message leaves", async () => {
      const { delayed, ready, name, keys, redis } = openWith(interop);
      const offerTwo = async (key: string) => {
        await delayed.offer(key, LONG, { key });
        await delayed.offer("stays", LONG, { key: "stays" });
      };
      const doors: Record<string, () => Promise<unknown>> = {
        poll: () => delayed.insertionOrder.poll(),
        remove: () => delayed.insertionOrder.remove("x"),
        removeAll: () => delayed.insertionOrder.removeAll(["x"]),
        retainAll: () => delayed.insertionOrder.retainAll(["stays"]),
        cancel: () => delayed.cancel("x"),
        pollLast: async () => {
          await delayed.reschedule("x", LONG);
          await delayed.insertionOrder.pollLastAndOfferFirstTo(name);
        },
        transfer: async () => {
          await delayed.reschedule("x", 0);
          await eventually(async () => (await delayed.size()) === 1);
        },
      };
      for (const [door, leave] of Object.entries(doors)) {
        await offerTwo("x");
        await leave();
        expect(await redis.hkeys(keys.businessKeys), door).toEqual(["stays"]);
      }
      await delayed.clear();
      expect(await redis.exists(keys.businessKeys)).toBe(0);
      await ready.clear();
    });

    it("keeps the offer order of messages with and without keys", async () => {
      const { delayed, ready } = openWith(interop);
      const at = new Date(Date.now() + 150);
      await Promise.all(
        Array.from({ length: 400 }, (_, i) =>
          delayed.offerAt(String(i), at, i % 3 === 0 ? { key: `k${i}` } : undefined),
        ),
      );
      const taken: string[] = [];
      while (taken.length < 400) taken.push(...(await ready.takeMany({ limit: 400 })));
      expect(taken).toEqual(Array.from({ length: 400 }, (_, i) => String(i)));
    });
  });
}

it("returns the first outcome again when an offer is sent twice", async () => {
  const redis = newRedis();
  const keys = queueKeys(uniqueName());
  const put = (id: Buffer, text: string, rule: string) =>
    run(redis, offerKeyed, keys, { channel: keys.channel }, [
      {
        member: packMember(id, Buffer.from(text), "k"),
        delay: 60_000,
        deadline: "",
        key: "k",
        rule,
        maxWait: "",
      },
    ]);
  const [a, b] = [createId(1_760_000_000_000_000), createId(1_760_000_000_000_001)] as const;
  const added = await put(a, "a", "replace");
  expect((await put(a, "a", "replace")).results).toEqual(added.results);
  const replaced = await put(b, "b", "replace");
  expect(replaced.results[0]?.outcome).toBe("replaced");
  expect((await put(b, "b", "replace")).results).toEqual(replaced.results);
  expect(await redis.zcard(keys.timeouts)).toBe(1);
});

it("finds a message by the key in a structured trailer, and removes the entry when the message has gone", async () => {
  const { delayed, ready, keys, redis } = openWith("none");
  const put = async (delay: number) => {
    const id = createId(Date.now() * 1000);
    const more = { headers: { trace: "1" }, attempts: 3 };
    // "a", in MessagePack.
    const member = packMember(id, Buffer.from([0xa1, 0x61]), "k", more);
    await run(redis, offerKeyed, keys, { channel: keys.channel }, [
      { member, delay, deadline: "", key: "k", rule: "ignore", maxWait: "" },
    ]);
  };
  await put(LONG);
  expect(await delayed.get("k")).toMatchObject({ payload: "a", key: "k" });
  expect(await delayed.offer("b", LONG, { key: "k" })).toMatchObject({ outcome: "existing" });
  expect(await delayed.reschedule("k", 2 * LONG)).toBeDefined();
  expect(await delayed.cancel("k")).toBe(true);
  expect(await redis.exists(keys.businessKeys)).toBe(0);

  // Not the last entry, with which the whole index would go.
  await delayed.offer("stays", LONG, { key: "stays" });
  await put(0);
  expect(await ready.take()).toBe("a");
  await eventually(async () => {
    expect(await redis.hkeys(keys.businessKeys)).toEqual(["stays"]);
  });
});

it("takes everything back when one of its keys has another type", async () => {
  // A sweep would report what it cannot tidy meanwhile.
  const line = newLine({ transfer: false });
  const redis = newRedis();
  for (const wrong of ["order", "businessKeys"] as const) {
    const name = uniqueName("wrong");
    const keys = queueKeys(name);
    const delayed = line.getDelayedQueue<string>(name);
    const first = await delayed.offer("first", LONG, { key: "k" });
    const saved = wrong === "order" ? await redis.lrangeBuffer(keys.order, 0, -1) : [];
    if (wrong === "order") {
      await redis.del(keys.order);
      await redis.set(keys.order, "a string");
      const failing = delayed.offer("second", LONG, { key: "k", onDuplicate: "replace" });
      await expect(failing).rejects.toMatchObject({ effect: "none", reply: "WRONGTYPE" });
      await redis.del(keys.order);
      await redis.rpush(keys.order, ...saved);
      expect(await delayed.get("k")).toMatchObject({ id: first.id, payload: "first" });
    } else {
      await redis.del(keys.businessKeys);
      await redis.set(keys.businessKeys, "a string");
      const failing = delayed.offer("second", LONG, { key: "other" });
      await expect(failing).rejects.toMatchObject({ effect: "none", reply: "WRONGTYPE" });
      await redis.del(keys.businessKeys);
    }
    expect(await delayed.insertionOrder.readAll()).toEqual(["first"]);
    expect(await delayed.size()).toBe(1);
  }
});

it("refuses illegal keys and options, and sends nothing", async () => {
  const delayed = newLine().getDelayedQueue<string>(uniqueName());
  const { id } = await delayed.offer("x", LONG);
  const bad: [OfferOptions, RegExp][] = [
    [{ key: "" }, /key must have 1 to 200 bytes of UTF-8, got 0/],
    [{ key: "ü".repeat(101) }, /key must have 1 to 200 bytes of UTF-8, got 202/],
    [{ key: 5 as never }, /key must be a string, got number/],
    [{ key: "\ud800" }, /well-formed/],
    [{ key: id }, /must not look like a message id/],
    [{ onDuplicate: "replace" }, /onDuplicate needs a key/],
    [{ maxWait: 5 }, /maxWait needs a key/],
    [
      { key: "k", maxWait: 5 },
      /maxWait goes with onDuplicate "replace" or "collect", got "ignore"/,
    ],
    [{ key: "k", onDuplicate: "replace", maxWait: -5 }, /maxWait must be between 0/],
    [{ key: "k", onDuplicate: "drop" as never }, /got "drop"/],
  ];
  for (const [options, message] of bad) {
    await expect(delayed.offer("y", 1, options)).rejects.toThrow(message);
  }
  await expect(delayed.cancel("")).rejects.toThrow(RangeError);
  await expect(delayed.cancel(7 as never)).rejects.toThrow(TypeError);
  // Dates and telephone numbers are no message ids.
  for (const key of ["2026-11", "1615283234-42", "0151-23456789", "😀"]) {
    expect((await delayed.offer(key, LONG, { key })).outcome).toBe("added");
    expect(await delayed.cancel(key)).toBe(true);
  }
  expect(await delayed.size()).toBe(1);
});

it("cancels, reschedules and finds Java's messages by id", async () => {
  const name = uniqueName();
  const keys = queueKeys(name);
  const redis = newRedis();
  const delayed = newLine({ codec: "string" }).getDelayedQueue<string>(name);
  const deadline = Date.now() + LONG;
  const members = [8, 16].map((length) =>
    packMember(Buffer.alloc(length, 7), Buffer.from(`j${length}`)),
  );
  for (const member of members) {
    await redis.zadd(keys.timeouts, deadline, member);
    await redis.rpush(keys.order, member);
  }
  const found = [];
  for await (const message of delayed.insertionOrder) found.push(message);
  expect(found.map(({ payload }) => payload)).toEqual(["j8", "j16"]);
  for (const { id, payload } of found) {
    expect((await delayed.get(id))?.payload).toBe(payload);
    const moved = await delayed.reschedule(id, 2 * LONG);
    expect((await delayed.get(moved?.id as MessageId))?.payload).toBe(payload);
    expect(await delayed.cancel(moved?.id as MessageId)).toBe(true);
  }
  expect(await delayed.size()).toBe(0);
});

it("forgets the keys of messages that Java moved", async () => {
  const name = uniqueName();
  const keys = queueKeys(name);
  const redis = newRedis();
  const delayed = newLine({ transfer: false }).getDelayedQueue<string>(name);
  await delayed.offerMany(
    Array.from({ length: 1000 }, (_, i) => ({ payload: "x", delay: LONG + i, key: `k${i}` })),
  );
  // A Java client removes the first 900 from the ZSET, and knows nothing of the index.
  await redis.zremrangebyrank(keys.timeouts, 0, 899);
  expect(await redis.hlen(keys.businessKeys)).toBe(1000);
  expect(await delayed.has("k5")).toBe(false);
  expect((await delayed.offer("again", LONG, { key: "k5" })).outcome).toBe("added");

  let cursor = "0";
  do cursor = await run(redis, tidyBusinessKeys, keys, { cursor, step: 300 });
  while (cursor !== "0");
  expect(await redis.hlen(keys.businessKeys)).toBe(101);
  expect(await delayed.has("k950")).toBe(true);
});
