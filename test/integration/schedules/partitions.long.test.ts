import { expect, test } from "vitest";
import type { Delayline, ReliableQueue } from "../../../src/index.ts";
import { startCluster } from "../../helpers/cluster.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
import { newRedis, redisUrl, uniqueName } from "../../helpers/redis.ts";

const EVERY = 100;

/** What is placed of such a schedule is 10 s ahead, and half of it has come when more is placed. */
const PLANNED_ANEW = 6000;
const OPTIONS = { every: EVERY, misfire: "all", payload: "run" } as const;

/** The ticks that were handled, by their schedules, in order. */
class Runs {
  readonly #ticks = new Map<string, number[]>();

  /** Handles all messages of a queue. */
  of(queue: ReliableQueue<string>): void {
    queue.subscribe((_, { key = "" }) => {
      const [, name = "", tick = ""] = /^schedule:(.*)@(.*)$/.exec(key) ?? [];
      this.#ticks.set(name, [...(this.#ticks.get(name) ?? []), Date.parse(tick)]);
    });
  }

  get first(): number {
    return Math.max(...Array.from(this.#ticks.values(), ([tick = 0]) => tick));
  }

  /** Whether each of so many schedules has come up to an instant. */
  areAt(count: number, instant: number): boolean {
    const all = [...this.#ticks.values()];
    return all.length === count && all.every((ticks) => Math.max(...ticks) >= instant);
  }

  /** The ticks that are missing or came twice, of all schedules. */
  get wrong(): string[] {
    return [...this.#ticks].flatMap(([name, all]) => {
      const ticks = all.toSorted((a, b) => a - b);
      const [first = 0] = ticks;
      return ticks
        .filter((tick, i) => tick !== first + i * EVERY)
        .slice(0, 3)
        .map((tick) => `${name} at ${(tick - first) / EVERY}`);
    });
  }
}

async function namesIn(queue: ReliableQueue<string>): Promise<string[]> {
  const names: string[] = [];
  for await (const { name } of queue.schedules.list()) names.push(name);
  return names.toSorted();
}

test("schedules follow a change of the number of partitions: no tick is lost, and none comes twice", async () => {
  const name = uniqueName("parted");
  const lines = [newLine(), newLine()] as [Delayline, Delayline];
  const [one, other] = lines.map((line) =>
    line.getReliableQueue<string>(name, { partitions: 2 }),
  ) as [ReliableQueue<string>, ReliableQueue<string>];
  const names = Array.from({ length: 10 }, (_, i) => `schedule ${i}`);
  const runs = new Runs();
  runs.of(one);
  runs.of(other);
  const declared = Object.fromEntries(names.map((schedule) => [schedule, OPTIONS]));
  expect((await one.schedules.declare("set", declared, { revision: 5 })).added.toSorted()).toEqual(
    names,
  );
  await eventually(() => runs.areAt(10, runs.first + 2 * EVERY));
  for (const count of [5, 3]) {
    await lines[1].setPartitions(name, count);
    expect(await namesIn(one)).toEqual(names);
    const [, found] = /:(\d+):\d+:stable/.exec((await factOf(name)) ?? "") ?? [];
    expect(found).toBe(String(count));
  }
  const now = await lines[0].serverTime();
  await eventually(() => runs.areAt(10, now + PLANNED_ANEW));
  // The revisions of sets are in new partitions as well.
  expect((await other.schedules.declare("set", {}, { revision: 4 })).outcome).toBe("outdated");
  expect(await other.schedules.declare("set", {}, { revision: 6 })).toMatchObject({
    removed: expect.arrayContaining(names) as string[],
  });
  await settled(one);
  expect(runs.wrong).toEqual([]);
  const left = await newRedis().keys(`delayline_planning:*${name}*`);
  expect(left).toEqual([]);
});

test("an ordinary queue that is given partitions keeps its schedules, and declares none twice", async () => {
  const name = uniqueName("parted");
  const runs = new Runs();
  const before = newLine();
  const ordinary = before.getReliableQueue<string>(name);
  runs.of(ordinary);
  const names = ["a", "b", "c", "d"];
  for (const schedule of names) await ordinary.schedules.upsert(schedule, OPTIONS);
  await eventually(() => runs.areAt(4, runs.first + EVERY));
  const parted = newLine().getReliableQueue<string>(name, { partitions: 3 });
  runs.of(parted);
  // A process that may not know of the partitions yet.
  const late = newLine({ transfer: false }).getReliableQueue<string>(name);
  const outcomes = await Promise.all(names.map((one) => late.schedules.upsert(one, OPTIONS)));
  expect(outcomes.map(({ outcome }) => outcome)).toEqual(names.map(() => "unchanged"));
  const now = await before.serverTime();
  await eventually(() => runs.areAt(4, now + PLANNED_ANEW));
  expect(await namesIn(parted)).toEqual(names);
  for (const one of names) expect(await parted.schedules.remove(one)).toBe(true);
  expect(await parted.size()).toBe(0);
  await settled(parted);
  expect(runs.wrong).toEqual([]);
});

test("schedules of a queue on several servers, and on a Cluster", async () => {
  const { cluster } = await startCluster({ masters: 3 });
  const server = await startOwnServer();
  for (const redis of [cluster, [redisUrl(), server.url]]) {
    const name = uniqueName("parted");
    const queue = newLine({ redis }).getReliableQueue<string>(name, { partitions: 4 });
    const runs = new Runs();
    runs.of(queue);
    const names = Array.from({ length: 8 }, (_, i) => `s${i}`);
    const declared = Object.fromEntries(names.map((schedule) => [schedule, OPTIONS]));
    await queue.schedules.declare("set", declared, { revision: 1 });
    expect(await namesIn(queue)).toEqual(names);
    await eventually(() => runs.areAt(8, runs.first + 10 * EVERY));
    expect((await queue.schedules.declare("set", {}, { revision: 2 })).removed).toHaveLength(8);
    expect(await queue.size()).toBe(0);
    await settled(queue);
    expect(runs.wrong).toEqual([]);
  }
});

/** Resolves when every message is handled: of two consumers one may have handled a later one already. */
async function settled(queue: ReliableQueue<string>): Promise<void> {
  await eventually(async () => {
    const { delayed, ready, inFlight } = await queue.stats();
    return delayed + ready + inFlight === 0;
  });
}

/** The fact of a queue. */
async function factOf(name: string): Promise<string | null> {
  const [key = ""] = await newRedis().keys(`delayline_partitions:{${name}/0/*`);
  return await newRedis().get(key);
}
