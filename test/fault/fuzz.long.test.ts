import type { Redis } from "ioredis";
import { expect, test } from "vitest";
import type { Codec, MessageId, OfferOptions, OfferResult } from "../../src/index.ts";
import { queueKeys, type QueueKeys } from "../../src/queue/keys.ts";
import { retire, sweep, transfer } from "../../src/lua/delayed/transfer.ts";
import type { Elements } from "../../src/lua/family.ts";
import { run } from "../../src/lua/script.ts";
import {
  tidyAddresses,
  tidyMembers,
  tidyBusinessKeys,
  type TidyReply,
} from "../../src/lua/delayed/tidy.ts";
import { isMessageId, unpackMember } from "../../src/queue/message/message.ts";
import type { DelayedQueue } from "../../src/index.ts";
import { newLine } from "../helpers/delayline.ts";
import { newRedis, uniqueName } from "../helpers/redis.ts";
import { Garbage, Random } from "./garbage.ts";
import { repeated } from "../helpers/ledger.ts";

/*
 * Every key of a queue may hold any bytes: another program, another version or an operator wrote them. They may not
 * make a call fail, nor may a good message be lost or duplicated because of them.
 *
 * Each case fills the keys of a queue with garbage, then makes random calls with good messages and more garbage in
 * between. After each call it compares the good messages in Redis with what the call returned. At the end it moves all
 * of them.
 *
 * FUZZ_CASES=100000 for a long run; FUZZ_SEED=... FUZZ_CASES=1 to repeat one case.
 */

const CASES = Number(process.env["FUZZ_CASES"] ?? 1000);
const SEED = Number(process.env["FUZZ_SEED"] ?? Date.now() % 1_000_000_000);

const KEYS = ["k0", "k1", "k2"];
const HOUR = 3_600_000;

/** Reads any bytes. */
const codec: Codec<string> = {
  name: "latin1",
  encode: (text) => Buffer.from(text, "latin1"),
  decode: (bytes) => Buffer.from(bytes).toString("latin1"),
};

let redis: Redis;

const isGood = (payload: string) => payload.startsWith("good ");

/** A good message that is delayed. */
interface Good {
  readonly payload: string;
  readonly key: string | undefined;
  id: MessageId;
}

class Case {
  readonly #random: Random;
  readonly #garbage: Garbage;
  readonly #elements: Elements;
  readonly #queue: DelayedQueue<string>;
  readonly #keys: QueueKeys;
  readonly #deadline = Date.now() + HOUR;
  readonly #delayed = new Map<string, Good>();
  readonly #ready = new Set<string>();
  #count = 0;
  /** The steps so far, for the failure message. */
  readonly trace: string[] = [];

  constructor(seed: number, lines: ReturnType<typeof openLines>) {
    this.#random = new Random(seed);
    const interop = this.#random.pick(["none", "redisson"] as const);
    this.trace.push(interop);
    this.#elements = interop === "redisson" ? "members" : "addresses";
    this.#garbage = new Garbage(this.#random, KEYS, this.#deadline);
    const name = uniqueName("fuzz");
    this.#keys = queueKeys(name);
    this.#queue = lines[interop].getDelayedQueue<string>(name);
  }

  async run(): Promise<void> {
    await this.#fillWithGarbage();
    await this.#step("offer", () => this.#offer());
    for (let i = 0; i < 10; i++) {
      const [name, call] = this.#random.pick(this.#calls);
      await this.#step(name, call);
    }
    await this.#step("tidyAll", () => this.#tidyAll());
    await this.#step("drain", () => this.#drain());
    expect([...this.#delayed.keys()]).toEqual([]);
    await redis.unlink(...Object.values(this.#keys));
  }

  readonly #calls: readonly (readonly [string, () => Promise<unknown>])[] = [
    ["offer", () => this.#offer()],
    ["offerKeyed", () => this.#offerKeyed()],
    ["offerKeyed", () => this.#offerKeyed()],
    ["offerMany", () => this.#offerMany()],
    ["garbage", () => this.#addGarbage()],
    ["garbage", () => this.#addGarbage()],
    ["offerInVain", () => this.#offerInVain()],
    ["cancelById", () => this.#cancelById()],
    ["cancelByKey", () => this.#cancelByKey()],
    ["cancelWhere", () => this.#cancelWhere()],
    ["reschedule", () => this.#reschedule()],
    ["read", () => this.#read()],
    ["poll", () => this.#poll()],
    ["pollLast", () => this.#pollLast()],
    ["remove", () => this.#remove()],
    ["retainAll", () => this.#retainAll()],
    ["clear", () => this.#clear()],
    ["transfer", () => this.#transfer()],
    ["tidy", () => this.#tidyAll()],
  ];

  /** Does one step. Afterwards Redis holds what the ledger says. */
  async #step(name: string, call: () => Promise<unknown>): Promise<void> {
    this.trace.push(name);
    await call();
    const [members, payloads] = await Promise.all([
      redis.zrangeBuffer(this.#keys.timeouts, "0", "-1"),
      redis.lrangeBuffer(this.#keys.ready, 0, -1),
    ]);
    const delayed = members
      .map((member) => unpackMember(member)?.payload.toString("latin1") ?? "")
      .filter(isGood);
    const ready = payloads.map((payload) => payload.toString("latin1")).filter(isGood);
    expect(repeated([...delayed, ...ready]), "twice").toEqual([]);
    expect(delayed.toSorted(), "delayed").toEqual([...this.#delayed.keys()].toSorted());
    expect(ready.toSorted(), "ready").toEqual([...this.#ready].toSorted());
  }

  async #fillWithGarbage(): Promise<void> {
    const { timeouts, order, compacted, mover } = this.#keys;
    const random = this.#random;
    for (const { member, score } of random.some(6, () => this.#garbage.member())) {
      await redis.zadd(timeouts, score, member);
    }
    for (const list of [order, order, compacted]) {
      for (const element of random.some(6, () => this.#garbage.element())) {
        await redis.rpush(list, element);
      }
    }
    await this.#spoilIndex();
    // A hint: the key may be of another type as well.
    await random.pick([
      () => redis.set(mover, random.bytes(5)),
      () => redis.rpush(mover, "a list"),
      () => redis.hset(mover, "a", "hash"),
      () => Promise.resolve(0),
    ])();
  }

  async #spoilIndex(): Promise<void> {
    for (const entry of this.#random.some(4, () => this.#garbage.entry())) {
      const field = this.#random.pick([...KEYS, this.#random.bytes(3).toString("latin1")]);
      await redis.hset(this.#keys.businessKeys, field, entry);
    }
  }

  async #addGarbage(): Promise<void> {
    const { timeouts, order } = this.#keys;
    await this.#spoilIndex();
    const { member, score } = this.#garbage.member();
    await redis.zadd(timeouts, score, member);
    await redis.rpush(order, this.#garbage.element());
  }

  #payload(): string {
    return `good ${++this.#count}`;
  }

  async #offer(): Promise<void> {
    const payload = this.#payload();
    const offering = this.#random.pick([
      () => this.#queue.offer(payload, 0),
      () => this.#queue.offer(payload, HOUR),
      () => this.#queue.offerAt(payload, new Date(this.#deadline)),
    ]);
    this.#note(payload, undefined, await offering());
  }

  #rule(): OfferOptions {
    const key = this.#random.pick(KEYS);
    return this.#random.pick<OfferOptions>([
      { key },
      { key, onDuplicate: "replace" },
      { key, onDuplicate: "update" },
      { key, onDuplicate: "replace", maxWait: 10 },
    ]);
  }

  async #offerKeyed(): Promise<void> {
    const payload = this.#payload();
    const options = this.#rule();
    const delay = this.#random.pick([0, HOUR]);
    await this.#settle([[payload, options.key, await this.#queue.offer(payload, delay, options)]]);
  }

  async #offerMany(): Promise<void> {
    const messages = Array.from({ length: 4 }, (_, i) => ({
      payload: this.#payload(),
      delay: this.#random.pick([0, HOUR]),
      ...(i % 2 === 0 ? this.#rule() : {}),
    }));
    const results = await this.#queue.offerMany(messages);
    await this.#settle(
      results.map((result, i) => [messages[i]!.payload, messages[i]!.key, result]),
    );
  }

  /** While a key is of another type, Redis refuses offers, and leaves no trace of them. */
  async #offerInVain(): Promise<void> {
    const { order, businessKeys, timeouts } = this.#keys;
    const key = this.#random.pick([order, businessKeys]);
    const aside = `${timeouts}:aside`;
    const isThere = (await redis.exists(key)) === 1;
    if (isThere) await redis.rename(key, aside);
    await redis.set(key, "a string");
    const options = this.#random.pick<OfferOptions>([
      { key: "nobody's" },
      { key: this.#random.pick(KEYS), onDuplicate: "replace" },
      { key: this.#random.pick(KEYS), onDuplicate: "update" },
    ]);
    const offers = ["in vain 1", "in vain 2"].map((payload) =>
      this.#queue.offer(`good ${payload}`, 0, options),
    );
    for (const offer of await Promise.allSettled(offers)) {
      expect(offer).toMatchObject({ status: "rejected", reason: { effect: "none" } });
    }
    await redis.del(key);
    if (isThere) await redis.rename(aside, key);
  }

  #note(payload: string, key: string | undefined, { id, deadline, outcome }: OfferResult): void {
    expect(deadline).not.toBeNaN();
    if (outcome !== "existing") this.#delayed.set(payload, { payload, key, id });
  }

  /** Notes offers with keys. Each may have replaced one message that had its key, and no other. */
  async #settle(offers: [payload: string, key: string | undefined, result: OfferResult][]) {
    for (const [payload, key, result] of offers) this.#note(payload, key, result);
    for (const [payload, key, { outcome }] of offers) {
      if (outcome !== "replaced" && outcome !== "updated") continue;
      const others = [...this.#delayed.values()].filter((other) => other.key === key);
      // The offer replaced one of the messages with the key, unless that was garbage.
      for (const other of others) {
        if (other.payload === payload || (await this.#queue.get(other.id)) !== undefined) continue;
        this.#delayed.delete(other.payload);
        break;
      }
    }
  }

  #anyGood(): Good | undefined {
    return this.#random.pick([...this.#delayed.values()]);
  }

  async #cancelById(): Promise<void> {
    const good = this.#anyGood();
    if (good === undefined) return;
    expect(await this.#queue.cancelMany([good.id, good.id])).toEqual([true, false]);
    this.#delayed.delete(good.payload);
  }

  async #cancelByKey(): Promise<void> {
    const key = this.#random.pick(KEYS);
    const found = await this.#queue.get(key);
    expect(await this.#queue.has(key)).toBe(found !== undefined);
    if (found !== undefined) expect(found.key).toBe(key);
    expect(await this.#queue.cancel(key)).toBe(found !== undefined);
    if (found !== undefined) this.#delayed.delete(found.payload);
  }

  async #cancelWhere(): Promise<void> {
    const prefix = { prefix: this.#random.pick(["k", ...KEYS]) };
    const found = await this.#queue.cancelWhere(prefix, { dryRun: true });
    const messages = await Promise.all(found.keys.map((key) => this.#queue.get(key)));
    const cancelled = await this.#queue.cancelWhere(prefix);
    expect(cancelled.keys.toSorted()).toEqual(found.keys.toSorted());
    for (const message of messages) this.#delayed.delete(message?.payload ?? "");
  }

  async #reschedule(): Promise<void> {
    const good = this.#anyGood();
    const delay = this.#random.pick([0, HOUR, HOUR]);
    if (good !== undefined) {
      const moved = await this.#queue.reschedule(good.id, delay);
      expect(moved?.deadline).toBeGreaterThan(0);
      good.id = moved?.id ?? good.id;
    }
    const key = this.#random.pick(KEYS);
    const found = await this.#queue.get(key);
    const moved = await this.#queue.reschedule(key, delay);
    expect(moved === undefined).toBe(found === undefined);
    const known = this.#delayed.get(found?.payload ?? "");
    if (known !== undefined && moved !== undefined) known.id = moved.id;
  }

  async #read(): Promise<void> {
    const payloads = new Set<string>();
    for await (const { payload, deadline, id } of this.#queue.insertionOrder) {
      expect(deadline).not.toBeNaN();
      payloads.add(payload);
      if (isMessageId(id)) await this.#queue.get(id);
    }
    for (const { payload, id } of this.#delayed.values()) {
      expect(payloads).toContain(payload);
      expect((await this.#queue.get(id))?.payload).toBe(payload);
      expect(await this.#queue.insertionOrder.contains(payload)).toBe(true);
    }
    expect(await this.#queue.insertionOrder.contains("good, but never offered")).toBe(false);
    expect(await this.#queue.nextDeadline()).not.toBeNaN();
    await this.#queue.insertionOrder.peek();
  }

  async #poll(): Promise<void> {
    const polled = [
      await this.#queue.insertionOrder.poll(),
      ...(await this.#queue.insertionOrder.poll(2)),
    ];
    for (const payload of polled) this.#delayed.delete(payload ?? "");
  }

  async #pollLast(): Promise<void> {
    const payload = await this.#queue.insertionOrder.pollLastAndOfferFirstTo(this.#queue.name);
    if (this.#delayed.delete(payload ?? "")) this.#ready.add(payload ?? "");
  }

  async #remove(): Promise<void> {
    const good = this.#anyGood();
    if (good === undefined) return;
    expect(await this.#queue.insertionOrder.remove(good.payload)).toBe(true);
    this.#delayed.delete(good.payload);
    const other = this.#anyGood();
    if (other === undefined) return;
    expect(await this.#queue.insertionOrder.removeAll([other.payload, good.payload])).toBe(1);
    this.#delayed.delete(other.payload);
  }

  async #retainAll(): Promise<void> {
    const good = this.#anyGood();
    // Sometimes so many that they are not compared in Redis.
    const others = this.#random.once(2) ? [] : Array.from({ length: 250 }, (_, i) => `other ${i}`);
    await this.#queue.insertionOrder.retainAll([good?.payload ?? "", ...others]);
    this.#delayed.clear();
    if (good !== undefined) this.#delayed.set(good.payload, good);
  }

  async #clear(): Promise<void> {
    await this.#queue.clear();
    this.#delayed.clear();
  }

  async #transfer(grace = 0): Promise<number> {
    const script = this.#random.pick([transfer, sweep]).list;
    const args = {
      limit: 5,
      grace,
      claim: this.#random.below(2),
      task: "fuzz",
      known: 0,
      makes: this.#random.below(2),
      mark: this.#random.below(2),
      elementsAre: this.#elements,
    };
    const reply = await run(redis, script, this.#keys, args);
    expect(Object.values(reply)).not.toContain(NaN);
    // Moved messages are at the end of the ready messages.
    if (reply.moved > 0) {
      for (const bytes of await redis.lrangeBuffer(this.#keys.ready, -reply.moved, -1)) {
        const payload = bytes.toString("latin1");
        if (this.#delayed.delete(payload)) this.#ready.add(payload);
      }
    }
    await run(redis, retire, this.#keys, { channel: this.#keys.channel, task: "other" });
    return reply.moved + reply.quarantined;
  }

  async #tidyAll(): Promise<void> {
    if (this.#elements === "members") {
      for (let steps = 0; await run(redis, tidyMembers, this.#keys, { step: 3 }); steps++) {
        expect(steps).toBeLessThan(100);
      }
    }
    let next: TidyReply = { hasMore: true, thorough: this.#random.pick([0, 1]) };
    for (let steps = 0; next.hasMore; steps++) {
      expect(steps).toBeLessThan(100);
      next = await run(redis, tidyAddresses, this.#keys, { step: 3, thorough: next.thorough });
    }
    let cursor = "0";
    do cursor = await run(redis, tidyBusinessKeys, this.#keys, { cursor, step: 3 });
    while (cursor !== "0");
  }

  /** Makes all messages due, and moves them. */
  async #drain(): Promise<void> {
    const members = await redis.zrangeBuffer(this.#keys.timeouts, "0", "-1");
    for (const member of members) await redis.zadd(this.#keys.timeouts, 1, member);
    while ((await this.#transfer()) > 0);
    expect(await redis.zcard(this.#keys.timeouts)).toBe(0);
  }
}

const openLines = () => ({
  none: newLine({ codec, transfer: false }),
  redisson: newLine({ codec, transfer: false, interop: "redisson" }),
});

test(
  `${CASES} queues full of garbage: no call fails, no good message is lost or duplicated`,
  { timeout: 60_000 + CASES * 300 },
  async () => {
    redis = newRedis();
    const failures: string[] = [];
    // A client remembers every queue that it opened, so the test uses a new client now and then.
    for (let first = 0; first < CASES; first += 1000) {
      const lines = openLines();
      const last = Math.min(first + 1000, CASES);
      let next = first;
      const work = async () => {
        while (next < last) {
          const seed = SEED + next++;
          const one = new Case(seed, lines);
          await one.run().catch((error: unknown) => {
            const reason = error instanceof Error ? error.message : String(error);
            failures.push(`FUZZ_SEED=${seed}: ${one.trace.join(", ")}: ${reason}`);
          });
        }
      };
      await Promise.all(Array.from({ length: 8 }, work));
      await Promise.all([lines.none.close(), lines.redisson.close()]);
    }
    expect(failures.slice(0, 5), `${failures.length} of ${CASES} failed`).toEqual([]);
  },
);
