import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import { expect, test } from "vitest";
import type { Child } from "../../../scripts/child/child.ts";
import { newLine } from "../../helpers/delayline.ts";
import { startChild } from "../../helpers/child.ts";
import { eventually } from "../../helpers/eventually.ts";
import { newRedis, redisUrl, uniqueName } from "../../helpers/redis.ts";
import { bundle } from "../../helpers/bundle.ts";

// Processes that consume a queue exclusively come, go, die and sleep, while messages of 32 keys become ready.

interface Handled {
  readonly key: string;
  readonly number: number;
  /** Milliseconds from the message's deadline until its handler started. */
  readonly late: number;
  readonly fence: number;
  readonly pid: number;
}

/** A queue, the messages on their way into it, and the ledger of what handlers did with them. */
class Scene {
  readonly name = uniqueName("exclusive");
  readonly redis: Redis = newRedis();
  offeredCount = 0;
  readonly #line = newLine({ codec: "json" });
  readonly #numbers = new Map<string, number>();
  #isOffering = true;
  #offering: Promise<void> | undefined;
  #program: Promise<URL> | undefined;

  /** Offers 32 messages, one of each key, which are due at once. */
  async offer(partitions = 2): Promise<void> {
    const at = Date.now();
    const messages = Array.from({ length: 32 }, (_, i) => {
      const key = `k${i}`;
      const number = (this.#numbers.get(key) ?? -1) + 1;
      this.#numbers.set(key, number);
      return { payload: { key, number, at }, delay: 0, partitionKey: key };
    });
    const queue = this.#line.getReliableQueue(this.name, { partitions });
    await queue.offerMany(messages);
    this.offeredCount += messages.length;
  }

  /** Offers 160 messages a second until {@link endOffering}. */
  beginOffering(partitions?: number): void {
    this.#offering = (async () => {
      while (this.#isOffering) {
        await this.offer(partitions);
        await sleep(200);
      }
    })();
  }

  async endOffering(): Promise<void> {
    this.#isOffering = false;
    await this.#offering;
  }

  async setPartitions(count: number): Promise<void> {
    await this.#line.setPartitions(this.name, count);
  }

  /** Starts a process, which joins when it hears "go". */
  async start(): Promise<Child> {
    this.#program ??= bundle(new URL("../workers/exclusive-worker.ts", import.meta.url));
    const child = startChild(await this.#program, {
      env: { REDIS: redisUrl(), QUEUE: this.name },
    });
    await child.next((word) => word === "loaded", 30_000);
    return child;
  }

  /** Kills a process, and removes the messages it held from the ledger. */
  async kill(child: Child): Promise<void> {
    await child.kill();
    const running = await this.redis.hgetall(`${this.name}:running`);
    for (const [key, pid] of Object.entries(running)) {
      if (pid === String(child.pid)) await this.redis.hdel(`${this.name}:running`, key);
    }
  }

  async read(): Promise<{ handled: Handled[]; overlaps: string[] }> {
    const log = await this.redis.lrange(`${this.name}:log`, 0, -1);
    return {
      handled: log.filter((one) => one.startsWith("{")).map((one) => JSON.parse(one) as Handled),
      overlaps: log.filter((one) => !one.startsWith("{")),
    };
  }

  /** Waits until a process handles messages. */
  async handles({ pid }: Child): Promise<void> {
    await eventually(async () => (await this.read()).handled.some((one) => one.pid === pid));
  }

  /** Waits until, for every key, a message was handled that was offered after this call. */
  async goesOn(): Promise<void> {
    // One offer may be in progress.
    const later = new Map([...this.#numbers].map(([key, number]) => [key, number + 2]));
    await eventually(async () => {
      await sleep(50);
      const done = (await this.read()).handled.filter(
        ({ key, number }) => number >= (later.get(key) ?? 0),
      );
      expect(new Set(done.map(({ key }) => key)).size).toBe(later.size);
    });
  }

  /**
   * Waits until messages are handled soon after they are due, and for one second more. Returns how many were handled,
   * and the longest wait in that second, for which the machine is to blame.
   */
  async calm(): Promise<{ before: number; usual: number }> {
    let count = 0;
    const isCalm = async () => {
      await sleep(100);
      const { handled } = await this.read();
      count = handled.length;
      return handled.slice(-50).every(({ late }) => late < 1000);
    };
    await eventually(isCalm, { within: 40_000 });
    const first = count;
    await sleep(1000);
    await isCalm();
    const { handled } = await this.read();
    return { before: count, usual: longest(handled.slice(first)) };
  }

  /**
   * By how much the longest wait of the messages handled since `calm` exceeds the usual one. Waits in partitions that
   * kept their holder are usual, too: a busy machine stands still for all partitions.
   */
  async delaySince({ before, usual }: { before: number; usual: number }): Promise<number> {
    const all = (await this.read()).handled;
    const handled = all.slice(before);
    const fences = new Map(all.slice(0, before).map(({ key, fence }) => [key, fence]));
    const moved = new Set(
      handled.filter(({ key, fence }) => fence !== fences.get(key)).map(({ key }) => key),
    );
    const stayed = handled.filter(({ key }) => !moved.has(key));
    const late = longest(handled.filter(({ key }) => moved.has(key)));
    return late - Math.max(usual, longest(stayed));
  }
}

/** The longest wait of a message. */
function longest(handled: readonly Handled[]): number {
  return Math.max(0, ...handled.map(({ late }) => late));
}

/** Pairs of messages of one key that were handled out of order. The same message twice does not count. */
function disordered(handled: readonly Handled[]): string[] {
  const last = new Map<string, number>();
  return handled.flatMap(({ key, number }) => {
    const before = last.get(key) ?? -1;
    last.set(key, Math.max(number, before));
    return number >= before ? [] : [`${key}: ${number} behind ${before}`];
  });
}

const idsOf = (handled: readonly Handled[]) => handled.map(({ key, number }) => `${key}:${number}`);

test("one handler per key at a time, whoever joins, leaves or is killed, while the number changes twice", async () => {
  const scene = new Scene();
  const [a, b, c, d] = await Promise.all(Array.from({ length: 4 }, () => scene.start()));
  const [first, second, third, fourth] = [a, b, c, d] as [Child, Child, Child, Child];
  scene.beginOffering();
  await first.send("go");
  await second.send("go");
  await scene.handles(first);
  await scene.handles(second);

  // With 6 partitions, a third process joins and one leaves.
  await scene.setPartitions(6);
  const atJoin = await scene.calm();
  await third.send("go");
  await scene.handles(third);
  await scene.goesOn();
  const onJoin = await scene.delaySince(atJoin);
  const atLeave = await scene.calm();
  await first.send("leave");
  await first.next((word) => word === "left");
  await scene.goesOn();
  const onLeave = await scene.delaySince(atLeave);

  const atKill = await scene.calm();
  await scene.kill(second);
  await fourth.send("go");
  await scene.goesOn();
  const onKill = await scene.delaySince(atKill);
  await scene.setPartitions(3);
  await scene.endOffering();

  const isAllHandled = async () => {
    await sleep(100);
    const count = new Set(idsOf((await scene.read()).handled)).size;
    expect(count).toBe(scene.offeredCount);
  };
  await eventually(isAllHandled, { within: 30_000 });
  const { handled, overlaps } = await scene.read();
  expect(overlaps).toEqual([]);
  expect(disordered(handled)).toEqual([]);
  // Some 50 ms on a quiet machine. Waiting for the end of the lease would take at least 1.7 s.
  expect(onJoin).toBeLessThan(1500);
  expect(onLeave).toBeLessThan(1500);
  // Until the end of the lease, 2.5 s, and until another process notices.
  expect(onKill).toBeLessThan(8000);
}, 120_000);

test("a paused holder swallows no message, and starts none when it wakes", async () => {
  const scene = new Scene();
  const [paused, other] = await Promise.all([scene.start(), scene.start()]);
  await paused.send("go");
  await scene.offer(1);
  await scene.handles(paused);
  await eventually(async () => (await scene.read()).handled.length === scene.offeredCount);
  process.kill(paused.pid, "SIGSTOP");
  await other.send("go");
  // Its blocking call is still open, and this message goes to it.
  await scene.offer(1);
  await scene.handles(other);
  await scene.offer(1);
  await eventually(async () => {
    expect((await scene.read()).handled.length).toBe(scene.offeredCount);
  });
  process.kill(paused.pid, "SIGCONT");
  await eventually(async () => (await scene.read()).handled.length === scene.offeredCount);
  const { handled, overlaps } = await scene.read();
  expect(new Set(idsOf(handled)).size).toBe(scene.offeredCount);
  expect(overlaps).toEqual([]);
  // No message that it had taken before it lost the partition is handled with the old fence.
  const fences = handled.map(({ fence }) => fence);
  expect(fences).toEqual(fences.toSorted((x, y) => x - y));
}, 90_000);
