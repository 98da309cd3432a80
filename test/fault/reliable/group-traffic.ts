import { setTimeout as sleep } from "node:timers/promises";
import type { Redis, Cluster } from "ioredis";
import { expect } from "vitest";
import {
  ClosedError,
  RedisError,
  RejectError,
  type DelaylineOptions,
  type Delivery,
  type ReliableQueue,
} from "../../../src/index.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { newLineThatMayFail } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { ascending } from "../../helpers/numbers.ts";
import { uniqueName } from "../../helpers/redis.ts";
import { Offering, OUTLAST } from "../offering.ts";

/** Milliseconds between two offers: 100 a second. */
const INTERVAL = 10;

/** What the group "mail" does with a message: some fail once, and some for good. */
export const fateOf = (i: number): "ack" | "nack" | "throw" | "reject" =>
  i % 20 === 3 ? "reject" : i % 10 === 1 ? "nack" : i % 10 === 2 ? "throw" : "ack";

/**
 * A producer and two working groups: "mail" uses a handler that sometimes fails, and "audit" uses `takeMany` and `ack`.
 * Records the history of each message; instants are from `performance.now()`.
 */
export class GroupTraffic extends Offering {
  readonly name = uniqueName();
  /** When each group was done with each message. */
  readonly doneAt = { mail: new Map<number, number>(), audit: new Map<number, number>() };
  readonly #mail: ReliableQueue<number>;

  /** Begins at once; ends with the test. Messages are due after `delay` milliseconds. */
  constructor(options: () => DelaylineOptions, delay: number) {
    super();
    const open = (group: string) =>
      newLineThatMayFail(options()).getReliableQueue<number>(this.name, {
        group,
        leaseTimeout: 3_000,
        retry: [100],
      });
    this.#mail = open("mail");
    this.#mail.subscribe((i, delivery) => this.#handle(i, delivery), {
      concurrency: 20,
      onError: () => {},
    });
    void this.#audit(open("audit"));
    const producer = newLineThatMayFail({ ...options(), transfer: false, callTimeout: OUTLAST });
    const queue = producer.getReliableQueue<number>(this.name, { group: "mail" });
    this.begin((i) => queue.offer(i, delay), INTERVAL);
  }

  /** Resolves when 50 messages have come through in both groups. */
  async isFlowing(): Promise<void> {
    for (const done of Object.values(this.doneAt)) {
      await eventually(() => done.size >= 50, { within: 30_000 });
    }
  }

  /**
   * Stops offering, and waits until every offer is settled and nothing is delayed, retrying, ready, or in flight in
   * either group.
   */
  async end(redis: Redis | Cluster): Promise<void> {
    await this.settled();
    const { timeouts, retries, stream } = queueKeys(this.name);
    await eventually(
      async () => {
        const left = [await redis.zcard(timeouts), await redis.zcard(retries)];
        left.push(await redis.xlen(stream));
        for (const group of Object.keys(this.doneAt)) {
          const [inFlight] = (await redis.xpending(stream, group)) as [number];
          left.push(inFlight);
        }
        expect(left).toEqual([0, 0, 0, 0, 0]);
      },
      { within: 60_000, what: "nothing is left" },
    );
  }

  /** Ascending instants at which the messages were acknowledged that some group never completed. */
  get lostAt(): number[] {
    const lost = [...this.acknowledgedAt].filter(([i]) =>
      Object.values(this.doneAt).some((done) => !done.has(i)),
    );
    return ascending(lost.map(([, at]) => at));
  }

  /** The completed messages that had to become dead letters, and those that did. */
  async dead(): Promise<{ readonly wanted: number[]; readonly found: number[] }> {
    const wanted = [...this.doneAt.mail.keys()].filter((i) => fateOf(i) === "reject");
    const found = new Set<number>();
    for await (const { payload, group } of this.#mail.deadLetters) {
      expect(group).toBe("mail");
      found.add(payload as number);
    }
    return { wanted: ascending(wanted), found: ascending(found) };
  }

  /** Milliseconds from `at` until both groups were done with a message offered after `at`. */
  untilDone(at: number): number {
    return Math.max(...Object.values(this.doneAt).map((done) => this.until(at, done)));
  }

  /** Figures to read after a long run. `at` is the instant of the switch. */
  countsSince(at: number) {
    const { mail, audit } = this.doneAt;
    return {
      offered: this.offeredAt.size,
      acknowledged: this.acknowledgedAt.size,
      lost: this.lostAt.length,
      untilAcknowledged: this.untilAcknowledged(at),
      untilMail: this.until(at, mail),
      untilAudit: this.until(at, audit),
    };
  }

  async #handle(i: number, delivery: Delivery<number>): Promise<void> {
    const fate = fateOf(i);
    if (fate === "nack" && delivery.attempt === 1) {
      await delivery.nack({ delay: 50 });
      return;
    }
    if (fate === "throw" && delivery.attempt === 1) throw new Error("bad luck");
    this.#note("mail", i);
    if (fate === "reject") throw new RejectError("hopeless");
  }

  async #audit(queue: ReliableQueue<number>): Promise<void> {
    for (;;) {
      try {
        // One by one, the group would lag far behind after an outage.
        const deliveries = await queue.takeMany({ limit: 50 });
        for (const { payload } of deliveries) this.#note("audit", payload);
        await Promise.all(deliveries.map(acknowledge));
      } catch (error) {
        if (error instanceof ClosedError) return;
        if (!(error instanceof RedisError)) throw error;
      }
    }
  }

  #note(group: keyof GroupTraffic["doneAt"], i: number): void {
    const done = this.doneAt[group];
    if (!done.has(i)) done.set(i, performance.now());
  }
}

/** Repeats the call while its reply is lost, as the documentation advises. */
async function acknowledge(delivery: Delivery<number>): Promise<void> {
  for (;;) {
    try {
      await delivery.ack();
      return;
    } catch (error) {
      if (!(error instanceof RedisError)) throw error;
      await sleep(100);
    }
  }
}
