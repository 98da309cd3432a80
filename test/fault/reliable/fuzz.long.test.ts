import type { Redis } from "ioredis";
import { expect, test } from "vitest";
import type { Codec, Delivery, ReliableQueue } from "../../../src/index.ts";
import { queueKeys, type QueueKeys } from "../../../src/queue/keys.ts";
import { newLineThatMayFail } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";
import { Random } from "../garbage.ts";

/*
 * The stream, the retries and the dead letters may hold any bytes, too. They may not make a call fail, and each good
 * message is done exactly once.
 *
 * Each case fills the keys with garbage, then handles good messages while more garbage arrives: some are acknowledged
 * at once, some fail, some are rejected and redriven.
 *
 * FUZZ_CASES=10000 for a long run; FUZZ_SEED=... FUZZ_CASES=1 to repeat one case.
 */

const CASES = Math.ceil(Number(process.env["FUZZ_CASES"] ?? 1000) / 10);
const SEED = Number(process.env["FUZZ_SEED"] ?? Date.now() % 1_000_000_000);

/** Reads any bytes. */
const codec: Codec<string> = {
  name: "latin1",
  encode: (text) => Buffer.from(text, "latin1"),
  decode: (bytes) => Buffer.from(bytes).toString("latin1"),
};

const isGood = (payload: string) => payload.startsWith("good ");

class Case {
  readonly #random: Random;
  readonly #queue: ReliableQueue<string>;
  readonly #keys: QueueKeys;
  readonly #redis: Redis;
  readonly #open = new Set<string>();
  readonly trace: string[] = [];

  constructor(seed: number, queue: ReliableQueue<string>, redis: Redis) {
    this.#random = new Random(seed);
    this.#queue = queue;
    this.#keys = queueKeys(queue.name);
    this.#redis = redis;
  }

  async run(): Promise<void> {
    await this.#addGarbage();
    for (let i = 0; i < 4; i++) {
      const payload = `good ${i}`;
      this.#open.add(payload);
      const options = this.#random.pick([{}, { key: `k${i}` }, { headers: { a: "b" } }]);
      await this.#queue.offer(payload, 0, options);
      await this.#addGarbage();
    }
    const subscription = this.#queue.subscribe(
      (payload, delivery) => this.#handle(payload, delivery),
      {
        concurrency: 3,
        onError: () => {},
      },
    );
    await eventually(
      async () => {
        await this.#queue.deadLetters.redrive("all");
        await this.#look();
        expect([...this.#open]).toEqual([]);
      },
      { within: 30_000 },
    );
    await subscription.close();
  }

  async #handle(payload: string, delivery: Delivery<string>): Promise<void> {
    for (const { at } of delivery.failures) new Date(at).toISOString();
    if (!isGood(payload)) {
      await this.#random.pick([
        () => delivery.ack(),
        () => delivery.reject("garbage"),
        () => delivery.nack({ delay: 3_600_000 }),
      ])();
      return;
    }
    const what = this.#random.pick(["ack", "ack", "return", "throw", "nack", "reject", "extend"]);
    this.trace.push(`${payload} ${delivery.attempt} ${what}`);
    if (what === "throw") throw new Error("failed");
    if (what === "nack") await delivery.nack({ delay: 1 });
    if (what === "reject") await delivery.reject("for now");
    if (what === "extend") expect(await delivery.extend(1000)).toBe(true);
    if (what === "ack") expect(await delivery.ack()).toBe(true);
    if (["ack", "return", "extend"].includes(what)) {
      expect(this.#open.delete(payload), `${payload} is done once`).toBe(true);
    }
  }

  /** The calls that only read. */
  async #look(): Promise<void> {
    await this.#queue.size();
    await this.#queue.nextDeadline();
    await this.#queue.deadLetters.size();
    for await (const { bytes, failures } of this.#queue.deadLetters) {
      expect(bytes).toBeInstanceOf(Buffer);
      expect(failures.length).toBeLessThanOrEqual(10);
    }
  }

  async #addGarbage(): Promise<void> {
    const { stream, retries, retrying, dead, channel } = this.#keys;
    const random = this.#random;
    for (const fields of random.some(4, () => this.#fields())) {
      await this.#redis.xadd(random.pick([stream, dead]), "*", ...fields);
    }
    for (const name of random.some(3, () => this.#retryName())) {
      await this.#redis.zadd(retries, random.pick([0, 1.5, "-inf", "+inf", Date.now()]), name);
    }
    for (const name of random.some(3, () => this.#retryName())) {
      await this.#redis.hset(retrying, name, random.bytes(random.pick([0, 3, 8, 20])));
    }
    // Whoever puts an entry at the head without a wake-up makes the others wait for the next sweep.
    await this.#redis.publish(channel, "0");
  }

  #fields(): Buffer[] {
    const random = this.#random;
    const names = ["a", "p", "t", "n", "g", "d", "r", "other", ""];
    const values = [
      () => random.bytes(24),
      () => Buffer.concat([Buffer.alloc(2), random.bytes(22)]),
      () => random.bytes(random.pick([0, 1, 8, 16, 300])),
      () =>
        Buffer.concat([Buffer.from("ff01040e000000", "hex"), random.bytes(random.pick([13, 14]))]),
      () => Buffer.from(random.pick(["1", "-1", "1e9", "nan", "default", "1.5", "99999999999"])),
    ];
    const fields = random.some(6, () => [Buffer.from(random.pick(names)), random.pick(values)()]);
    return fields.length === 0 ? [Buffer.from("x"), Buffer.alloc(0)] : fields.flat();
  }

  #retryName(): Buffer {
    const random = this.#random;
    const address = random.bytes(random.pick([0, 8, 16, 24, 30]));
    const length = random.pick([address.length, 24, 255, 0]);
    return Buffer.concat([Buffer.from([length]), address, Buffer.from("default")]);
  }
}

test(
  `${CASES} queues full of garbage: each good message is done once (seed ${SEED})`,
  { timeout: CASES * 1000 + 60_000 },
  async () => {
    const redis = newRedis();
    for (let i = 0; i < CASES; i++) {
      const seed = SEED + i;
      const line = newLineThatMayFail({ codec });
      const queue = line.getReliableQueue<string>(uniqueName("fuzz"), {
        codec,
        retry: [1],
        maxAttempts: 3,
      });
      const fuzzed = new Case(seed, queue, redis);
      try {
        await fuzzed.run();
        // Only quarantined messages are reported.
        for (const { code } of line.errors) expect(code).toBe("QUARANTINED");
      } catch (error) {
        const trace = fuzzed.trace.join(", ");
        throw new Error(`FUZZ_SEED=${seed} FUZZ_CASES=1: ${trace}; ${line.errors.join("; ")}`, {
          cause: error,
        });
      }
      await line.close();
      await redis.unlink(...Object.values(queueKeys(queue.name)));
    }
  },
);
