import { setTimeout as sleep } from "node:timers/promises";
import type { RedisOptions } from "ioredis";
import { expect, test } from "vitest";
import { OfferError } from "../../src/index.ts";
import { newLine, newLineThatMayFail } from "../helpers/delayline.ts";
import { eventually } from "../helpers/eventually.ts";
import { startOwnServer } from "../helpers/own-server.ts";
import { newRedis, redisUrl, uniqueName } from "../helpers/redis.ts";
import { Roles } from "../helpers/roles.ts";
import { startProxy } from "../helpers/tcp-proxy.ts";
import { missing, repeated } from "../helpers/ledger.ts";
import { upTo } from "../helpers/numbers.ts";

/*
 * ioredis options that are fine for a cache and dangerous for a queue, during an outage of ten seconds. They apply to
 * the calls that the caller awaits. They must not reach the library's own connections, and the library's clients
 * recover whatever they say.
 */

const hostile: Record<string, Omit<RedisOptions, "replyMapping">> = {
  "nothing special": {},
  commandTimeout: { commandTimeout: 1000 },
  keyPrefix: { keyPrefix: "app:" },
  db: { db: 3 },
  "maxRetriesPerRequest: 1": { maxRetriesPerRequest: 1 },
  "maxRetriesPerRequest: 0": { maxRetriesPerRequest: 0 },
  enableAutoPipelining: { enableAutoPipelining: true },
  stringNumbers: { stringNumbers: true },
  socketTimeout: { socketTimeout: 1000 },
  blockingTimeout: { blockingTimeout: 500 },
  "enableOfflineQueue: false": { enableOfflineQueue: false },
  "enableReadyCheck: false": { enableReadyCheck: false },
  lazyConnect: { lazyConnect: true },
  "retryStrategy: null": { retryStrategy: () => null },
  "a slow retryStrategy": { retryStrategy: () => 2_000 },
  "autoResubscribe: false": { autoResubscribe: false },
  "autoResendUnfulfilledCommands: false": { autoResendUnfulfilledCommands: false },
  "protocol: 2": { protocol: 2 },
  "all at once": {
    commandTimeout: 1000,
    keyPrefix: "all:",
    db: 5,
    maxRetriesPerRequest: 1,
    enableAutoPipelining: true,
    stringNumbers: true,
    socketTimeout: 1000,
    blockingTimeout: 500,
    enableOfflineQueue: false,
    lazyConnect: true,
    retryStrategy: () => null,
    autoResubscribe: false,
    autoResendUnfulfilledCommands: false,
  },
};

const cases = Object.keys(hostile).flatMap((option) => [
  { option, isLent: false },
  { option, isLent: true },
]);

/** A client with hostile options that consumes what it offers. */
class Subject {
  readonly name: string;
  /** The lent client, if there is one. */
  readonly lent;
  readonly line;
  readonly received: number[] = [];
  readonly accepted: number[] = [];
  /** Accepted messages that fall due before the end of the outage. */
  readonly dueSoon: number[] = [];
  /** The ids of the accepted messages that {@link isOver} makes due. */
  readonly #late: string[] = [];
  /** Messages that Redis refused, or that never reached it. */
  readonly refused: number[] = [];
  #next = 0;

  constructor({ option, isLent }: (typeof cases)[number], port: number) {
    const options = { port, ...hostile[option] };
    this.name = `${option} (${isLent ? "lent" : "options"})`;
    this.lent = isLent ? newRedis(`redis://127.0.0.1:${port}`, options) : undefined;
    this.line = newLineThatMayFail({ redis: this.lent ?? options, codec: "json" });
    this.#queueName = uniqueName();
    this.line
      .getBlockingQueue<number>(this.#queueName)
      .subscribe((message) => this.received.push(message));
  }

  readonly #queueName: string;

  get #queue() {
    return this.line.getDelayedQueue<number>(this.#queueName);
  }

  /** Offers one message. Returns whether it was accepted. */
  async offer(delay: number): Promise<boolean> {
    const n = this.#next++;
    try {
      const { id } = await this.#queue.offer(n, delay);
      this.accepted.push(n);
      if (delay < LATE) this.dueSoon.push(n);
      else this.#late.push(id);
      return true;
    } catch (error) {
      if (!(error instanceof OfferError)) throw error;
      if (error.effect === "none") this.refused.push(n);
      return false;
    }
  }

  /** Makes the messages due that were held back until after the outage. */
  async isOver(): Promise<void> {
    for (const id of this.#late) expect(await this.#queue.reschedule(id, 0)).toBeDefined();
  }

  /** How many messages are still delayed although their offer was reported as accepted or refused. */
  async leftCount(): Promise<number> {
    const delayed = await this.#queue.insertionOrder.readAll();
    return delayed.filter((n) => this.accepted.includes(n) || this.refused.includes(n)).length;
  }

  /** Offers until one message is accepted and received: then everything works. */
  async isAtWork(within: number): Promise<void> {
    const offers = async () => {
      // If its owner told a lent client not to reconnect, the owner has to connect it.
      if (this.lent?.status === "end") await this.lent.connect();
      return await this.offer(0);
    };
    await eventually(offers, { within, what: `${this.name} offers` });
    const last = this.dueSoon.at(-1) ?? NaN;
    await eventually(() => this.received.includes(last), {
      within,
      what: `${this.name} transfers and takes`,
    });
  }

  /** Resolves when all of these have arrived. */
  async hasReceived(messages: readonly number[]): Promise<void> {
    await eventually(() => missing(messages, this.received).length === 0, {
      within: 30_000,
      what: `${this.name} has lost nothing`,
    });
  }
}

/**
 * The delay in milliseconds of a message offered in the outage. It is longer than the test, which makes the message
 * due.
 */
const LATE = 3_600_000;

test("hostile options, in ours and in lent clients, survive an outage of 10 s", async () => {
  const server = await startOwnServer();
  const proxy = await startProxy(server.url);
  const subjects = cases.map((one) => new Subject(one, proxy.port));
  const problems: string[] = [];
  /** Does something with all subjects at once, and notes what fails for which one. */
  const withAll = async (doing: (subject: Subject) => Promise<void>) => {
    await Promise.all(
      subjects.map((subject) =>
        doing(subject).catch((error: unknown) =>
          problems.push(`${subject.name}: ${String(error)}`),
        ),
      ),
    );
  };

  await withAll((subject) => subject.isAtWork(40_000));
  expect(problems).toEqual([]);

  // Some fall due while the server hangs, some while it is out of reach.
  const [hang, unreachable] = [5_000, 5_000];
  const offerTen = async (subject: Subject) => {
    await Promise.all(upTo(10).map((i) => subject.offer(unreachable / 2 + i * 10)));
  };
  await withAll(offerTen);

  // All subjects go on offering messages that fall due after the outage: an offer that is sent again is recognised only
  // until its first copy has left.
  const outage = new AbortController();
  const offering = withAll(async (subject) => {
    const offers: Promise<unknown>[] = [];
    while (!outage.signal.aborted) {
      offers.push(subject.offer(LATE));
      await sleep(500);
    }
    await Promise.all(offers);
  });

  server.pause();
  await sleep(hang);
  server.resume();
  // The network breaks when nothing is on its way: a pop whose reply is lost has lost its message.
  await withAll(async (subject) => {
    await subject.isAtWork(40_000);
    await subject.hasReceived(subject.dueSoon);
  });
  await withAll(offerTen);
  proxy.refuse();
  proxy.cut();
  await sleep(unreachable);
  await proxy.accept();
  outage.abort();

  await offering;
  await withAll((subject) => subject.isAtWork(40_000));
  await withAll(async (subject) => {
    const { accepted, received, refused } = subject;
    await subject.isOver();
    await subject.hasReceived(accepted);
    // No second copy either.
    expect(await subject.leftCount()).toBe(0);
    expect({ twice: repeated(received) }).toEqual({ twice: [] });
    // A message reported as not stored is not stored.
    expect(received.filter((n) => refused.includes(n))).toEqual([]);
  });
  expect(problems).toEqual([]);

  await withAll(async ({ line, lent }) => {
    await line.close();
    if (lent === undefined) return;
    // Lent clients come back in order.
    expect(lent.status).toBe("ready");
    expect(await lent.ping()).toBe("PONG");
  });
  expect(problems).toEqual([]);
}, 240_000);

test.for(
  (["commandTimeout", "blockingTimeout", "socketTimeout"] as const).flatMap((option) => [
    { option, isLent: false },
    { option, isLent: true },
  ]),
)(
  "$option does not reach the connections that take messages (lent: $isLent)",
  async ({ option, isLent }) => {
    const proxy = await startProxy(redisUrl());
    const roles = new Roles(proxy);
    const options = { port: proxy.port, [option]: 150 };
    const lent = isLent ? newRedis(proxy.url, options) : undefined;
    const line = newLine({ redis: lent ?? options, codec: "json", transfer: false });
    const name = uniqueName();
    const queue = line.getBlockingQueue<number>(name);
    const redis = newRedis();
    const isBlocked = async () => String(await redis.client("LIST")).includes(`:blocking:${name} `);

    // A blocking call that lasts longer than 150 ms is not abandoned, which would lose what Redis replied meanwhile.
    const received: number[] = [];
    const subscription = queue.subscribe((message) => received.push(message));
    await eventually(isBlocked);
    roles.only("blocking").delay.reply = 50;
    for (const n of upTo(6)) {
      await sleep(150 + 40 * n);
      await redis.rpush(name, n);
    }
    await eventually(() => received.length === 6);
    await subscription.close();
    expect(received).toEqual(upTo(6));

    // Nor is a pop whose reply takes longer.
    const other = line.getBlockingQueue<number>(uniqueName());
    await redis.rpush(other.name, 6);
    roles.only("background").delay.reply = 400;
    expect(await other.poll()).toBe(6);
    expect(line.errors).toEqual([]);
  },
);

test("a lent client gets no commands, no listeners and no state from the library", async () => {
  const lent = newRedis();
  await lent.ping();
  const before = { events: lent.eventNames(), keys: Object.keys(lent).toSorted() };
  const line = newLine({ redis: lent });
  const name = uniqueName();
  await line.getDelayedQueue(name).offer("message", 0);
  expect(await line.getBlockingQueue(name).take()).toBe("message");
  await line.close();
  expect({ events: lent.eventNames(), keys: Object.keys(lent).toSorted() }).toEqual(before);
  expect(lent.status).toBe("ready");
  // It still does what it did: transactions, pipelines, blocking calls, subscriptions.
  expect(await lent.multi().set(name, "1").get(name).exec()).toEqual([
    [null, "OK"],
    [null, "1"],
  ]);
  expect(await lent.blpop(`${name}:nothing`, 0.01)).toBeNull();
  expect(await lent.subscribe(name)).toBe(1);
});

test("with enableOfflineQueue: false the first offer waits for the connection, as the caller cannot", async () => {
  const { port } = await startProxy(redisUrl());
  const line = newLine({ redis: { port, enableOfflineQueue: false } });
  const name = uniqueName();
  await line.getDelayedQueue(name).offer("first", 0);
  expect(await line.getBlockingQueue(name).take()).toBe("first");
});

test("the error of an offer that was never sent says so", async () => {
  const proxy = await startProxy(redisUrl());
  proxy.refuse();
  const line = newLineThatMayFail({
    redis: { port: proxy.port, maxRetriesPerRequest: 0 },
    transfer: false,
  });
  const offer = line.getDelayedQueue(uniqueName()).offer("message", 0);
  await expect(offer).rejects.toMatchObject({ code: "OFFER", effect: "none" });
});
