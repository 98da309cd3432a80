import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { expect, onTestFinished, test } from "vitest";
import { OfferError, type DelaylineOptions } from "../../../src/index.ts";
import { newLine, newLineThatMayFail, type TestLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { startOwnServer, type OwnServer } from "../../helpers/own-server.ts";
import { redisUrl, uniqueName } from "../../helpers/redis.ts";
import { missing, repeated } from "../../helpers/ledger.ts";
import { median } from "../../helpers/numbers.ts";

/* A queue in partitions on a list of two servers, one of which is gone for a while. */

const P = 4;

/** Milliseconds that a call may take. */
const CALL_TIMEOUT = 3000;

interface Message {
  readonly n: number;
  readonly due: number;
}

/** Two processes at work on two servers, and the history of each message. */
class Scene {
  readonly name = uniqueName("partitions");
  readonly servers: readonly OwnServer[];
  readonly line: TestLine;
  readonly acknowledged: number[] = [];
  readonly arrived: number[] = [];
  /** Milliseconds by which each message was late. */
  readonly lateness = new Map<number, number>();
  #count = 0;

  private constructor(servers: readonly OwnServer[]) {
    this.servers = servers;
    this.line = newLineThatMayFail(this.options);
    newLineThatMayFail(this.options)
      .getBlockingQueue<Message>(this.name, { partitions: P })
      .subscribe(({ n, due }) => {
        this.arrived.push(n);
        this.lateness.set(n, performance.now() - due);
      });
  }

  static async start(): Promise<Scene> {
    const scene = new Scene([
      await startOwnServer({ appendOnly: true }),
      await startOwnServer({ appendOnly: true }),
    ]);
    await scene.haveArrived(await scene.offerMany(20));
    return scene;
  }

  get options(): DelaylineOptions {
    return { redis: this.servers.map(({ url }) => url), callTimeout: CALL_TIMEOUT };
  }

  /** Offers a message. Resolves to its number when Redis has stored it. */
  async offer(key?: string, line = this.line): Promise<number> {
    const n = this.#count++;
    const queue = line.getDelayedQueue<Message>(this.name, { partitions: P });
    await queue.offer({ n, due: performance.now() + 100 }, 100, key === undefined ? {} : { key });
    this.acknowledged.push(n);
    return n;
  }

  /** Makes each offer in a turn of its own: offers of one turn go to one partition. */
  async offerMany(count: number): Promise<number[]> {
    const offers: Promise<number>[] = [];
    for (let i = 0; i < count; i++) {
      offers.push(this.offer());
      await nextTurn();
      await nextTurn();
    }
    const settled = await Promise.allSettled(offers);
    const failed = settled.find((one) => one.status === "rejected");
    if (failed !== undefined) throw failed.reason;
    return await Promise.all(offers);
  }

  async haveArrived(some: readonly number[]): Promise<void> {
    await eventually(() => some.every((n) => this.lateness.has(n)), { what: "all have arrived" });
  }

  /** Milliseconds by which each of forty messages is late. */
  async latenessNow(): Promise<number[]> {
    const sent: number[] = [];
    while (sent.length < 40) {
      sent.push(await this.offer());
      await sleep(5);
    }
    await this.haveArrived(sent);
    return sent.map((n) => this.lateness.get(n) ?? NaN);
  }

  /** A key whose messages go to this server. */
  async keyOn(server: number): Promise<string> {
    const queue = this.line.getDelayedQueue<Message>(this.name);
    for (let i = 0; ; i++) {
      const key = `key-${i}`;
      await queue.offer({ n: -1, due: 0 }, 3_600_000, { key });
      const partitions = await this.line.partitions(this.name);
      await queue.cancel(key);
      if (partitions.some(({ partition, delayed }) => delayed > 0 && partition % 2 === server)) {
        return key;
      }
    }
  }
}

const cases = [
  {
    dead: 0,
    what: "hangs",
    go: async (server: OwnServer) => server.pause(),
    back: async (server: OwnServer) => server.resume(),
  },
  {
    dead: 1,
    what: "is killed",
    go: (server: OwnServer) => server.kill(),
    back: (server: OwnServer) => server.restart(),
  },
];

test.for(cases)(
  "server $dead $what: the other server's partitions stay punctual, and everything goes on when it is back",
  { timeout: 90_000 },
  async ({ dead, go, back }) => {
    const scene = await Scene.start();
    const victim = scene.servers[dead] as OwnServer;
    const key = await scene.keyOn(dead);
    // A busy machine makes everything late.
    const usual = median(await scene.latenessNow());

    await go(victim);
    // A hanging server is noticed within three seconds.
    await eventually(async () => void (await scene.offerMany(10)), { within: 30_000 });
    // A process that waited for the dead server would wait for a call's time, 3 s.
    expect(median(await scene.latenessNow())).toBeLessThan(1000 + usual);

    const startedAt = performance.now();
    const failure: unknown = await scene.offer(key).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(OfferError);
    expect(String(failure)).toContain(`within ${CALL_TIMEOUT} ms`);
    expect(performance.now() - startedAt).toBeLessThan(2 * CALL_TIMEOUT);

    // A process that starts now learns the number of partitions from the living server.
    await scene.haveArrived([await scene.offer(undefined, newLineThatMayFail(scene.options))]);

    await back(victim);
    await eventually(async () => void (await scene.offer(key)), { within: 30_000 });
    await scene.haveArrived(await scene.offerMany(20));
    await scene.haveArrived(scene.acknowledged);
    expect(missing(scene.acknowledged, scene.arrived)).toEqual([]);
    expect(repeated(scene.arrived)).toEqual([]);
    // The client reports the trouble at most once, and then once that it is over. A server that hung only briefly may
    // pass unnoticed.
    expect(scene.line.errors.length).toBeLessThanOrEqual(1);
    await eventually(() => scene.line.recoveries.length === scene.line.errors.length);
  },
);

test("a list of another length is refused", async () => {
  const name = uniqueName("partitions");
  const server = await startOwnServer();
  const both = newLine({ redis: [redisUrl(), server.url] });
  await both.getDelayedQueue<number>(name, { partitions: 3 }).offer(1, 60_000);
  for (const redis of [[redisUrl()], [redisUrl(), server.url, redisUrl()]]) {
    const other = newLine({ redis, transfer: false });
    await expect(
      other.getDelayedQueue<number>(name, { partitions: 3 }).offer(2, 60_000),
    ).rejects.toThrow(
      new TypeError(
        `queue "${name}" is on 2 server(s), but the option redis names ${redis.length}`,
      ),
    );
  }
});

test("a keyPrefix stands in front of every key, and one with a brace is refused", async () => {
  const name = uniqueName("partitions");
  const redis = new Redis(redisUrl(), { keyPrefix: "app:", reconnectOnError: () => true });
  onTestFinished(() => redis.disconnect());
  const line = newLine({ redis });
  const queue = line.getDelayedQueue<number>(name, { partitions: 3 });
  await queue.offerMany(
    Array.from({ length: 9 }, (_, i) => ({ payload: i, delay: 20, key: `k${i}` })),
  );
  const ready = line.getBlockingQueue<number>(name);
  const taken: number[] = [];
  while (taken.length < 9) taken.push(...(await ready.takeMany({ limit: 9 })));
  expect(taken.toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);

  const braced = new Redis(redisUrl(), { keyPrefix: "{app}:", lazyConnect: true });
  const other = newLine({ redis: braced });
  expect(() => other.getDelayedQueue(name, { partitions: 3 })).toThrow(TypeError);
  expect(() => other.getDelayedQueue(name, { transfer: false })).not.toThrow();
});
