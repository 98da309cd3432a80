import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import { expect, test } from "vitest";
import type { Child } from "../../scripts/child/child.ts";
import { bundle } from "../helpers/bundle.ts";
import { startChild } from "../helpers/child.ts";
import { newLine, newLineThatMayFail } from "../helpers/delayline.ts";
import { eventually } from "../helpers/eventually.ts";
import { startOwnServer } from "../helpers/own-server.ts";
import { newRedis, redisUrl, uniqueName } from "../helpers/redis.ts";
import { SentinelGroup } from "../helpers/sentinel-group.ts";

/*
 * Four processes declare the same schedules, plan them and move their messages. All are killed at random, several at once,
 * while connections are cut, scripts forgotten, and Redis is killed and restarted. Each tick comes once.
 *
 * What is placed of these schedules is 10 s ahead, and they are planned anew after 5 s: a shorter storm would show nothing.
 */

/** A few seconds show that it works; `npm run soak` makes it long. */
const { SCHEDULES_SECONDS } = process.env;
const SECONDS = Number(SCHEDULES_SECONDS ?? 8);

const EVERY = 100;
const NAMES = ["a", "b", "c"];

test(
  `a storm of ${SECONDS} s: no tick of a schedule is lost, and none comes twice`,
  async () => {
    const server = await startOwnServer({ appendOnly: true });
    const redis = newRedis(server.url);
    const name = uniqueName();
    const env = { REDIS: server.url, QUEUE: name, EVERY: String(EVERY), NAMES: NAMES.join(",") };
    const worker = await bundle(new URL("workers/schedules-worker.ts", import.meta.url));
    const start = () => startChild(worker, { env });
    const workers = Array.from({ length: 4 }, start);
    await Promise.all(workers.map(isReady));

    const counts = { killed: 0, cut: 0, forgotten: 0, restarts: 0 };
    const end = performance.now() + SECONDS * 1000;
    for (let n = 0; performance.now() < end; n++) {
      await sleep(Math.random() * 300);
      const victims = n % 7 === 6 ? workers.map((_, i) => i) : [Math.floor(Math.random() * 4)];
      for (const i of victims) {
        await workers[i]?.kill("SIGKILL");
        workers[i] = start();
        counts.killed++;
      }
      counts.cut += await cutConnections(redis);
      if (n % 2 === 0) await redis.script("FLUSH");
      counts.forgotten += n % 2 === 0 ? 1 : 0;
      if (n % 10 !== 5) continue;
      await server.kill();
      await server.restart();
      counts.restarts++;
    }
    const runs = async () => ticksIn(await redis.lrange(name, 0, -1));
    // More than what the first process has placed.
    const count = Math.max(150, (await runs()).get("a")?.length ?? 0) + 20;
    const isDone = async () => [...(await runs()).values()].every(({ length }) => length > count);
    await eventually(isDone, { within: 60_000 });
    for (const one of workers) await one.kill("SIGKILL");

    const found = await runs();
    expect([...found.keys()].toSorted()).toEqual(NAMES);
    const wrong = wrongIn(found);
    if (SCHEDULES_SECONDS !== undefined) console.log(counts, [...found.values()].flat().length);
    expect(wrong).toEqual([]);
    expect(Math.min(counts.killed, counts.cut, counts.forgotten, counts.restarts)).toBeGreaterThan(
      0,
    );
  },
  SECONDS * 1000 + 120_000,
);

test("the number of partitions changes while planners are killed: no tick is lost, and none comes twice", async () => {
  const name = uniqueName();
  const env = { REDIS: redisUrl(), QUEUE: name, EVERY: String(EVERY), NAMES: NAMES.join(",") };
  const worker = await bundle(new URL("workers/schedules-worker.ts", import.meta.url));
  const start = () => startChild(worker, { env: { ...env, PARTITIONS: "2" } });
  const workers = Array.from({ length: 3 }, start);
  await Promise.all(workers.map(isReady));
  const line = newLine();
  const payloads: string[] = [];
  const queue = line.getBlockingQueue<string>(name, { codec: "string", partitions: 2 });
  queue.subscribe((payload) => void payloads.push(payload));

  let killed = 0;
  for (const count of [5, 3]) {
    const changed = new AbortController();
    const changing = line.setPartitions(name, count).finally(() => changed.abort());
    do {
      const i = killed++ % workers.length;
      await workers[i]?.kill("SIGKILL");
      workers[i] = start();
      await isReady(workers[i]);
    } while (!changed.signal.aborted);
    await changing;
  }
  const now = await line.serverTime();
  // What the killed processes have placed is 10 s ahead at most.
  const areAt = (instant: number) => {
    const last = [...ticksIn(payloads).values()].map((ticks) => Math.max(...ticks));
    return last.length === NAMES.length && last.every((tick) => tick > instant);
  };
  await eventually(() => areAt(now + 12_000), { within: 60_000 });
  for (const one of workers) await one.kill("SIGKILL");
  expect(wrongIn(ticksIn(payloads))).toEqual([]);
  expect(killed).toBeGreaterThan(1);
}, 150_000);

test("after a failover each tick has come once: the placed messages and the note of them are lost together", async () => {
  const causes: ((group: SentinelGroup) => unknown)[] = [
    (group) => group.failOver(),
    async (group) => (await group.master()).server.kill(),
  ];
  await Promise.all(
    causes.map(async (cause) => {
      const group = await SentinelGroup.start();
      const name = uniqueName();
      for (let i = 0; i < 3; i++) {
        const line = newLineThatMayFail({ redis: group.options });
        const { schedules } = line.getDelayedQueue<string>(name, { codec: "string" });
        const options = { every: EVERY, misfire: "all", payload: payloadOf } as const;
        const declared = Object.fromEntries(NAMES.map((one) => [one, options]));
        await schedules.declare("failover", declared, { revision: 1 });
      }
      const runsOn = async (redis: Redis) => ticksIn(await redis.lrange(name, 0, -1));
      const before = newRedis((await group.master()).server.url);
      await eventually(async () => ((await runsOn(before)).get("a")?.length ?? 0) > 20);
      before.disconnect();
      const { switched } = await group.nextSwitch();
      await cause(group);
      const { to } = await switched;
      const after = newRedis(to.server.url);
      const now = Number((await after.time())[0]) * 1000;
      // More than what had been placed before.
      const isDone = async () => {
        const last = [...(await runsOn(after)).values()].map((ticks) => Math.max(...ticks));
        return last.length === NAMES.length && last.every((tick) => tick > now + 11_000);
      };
      await eventually(isDone, { within: 60_000 });
      expect(wrongIn(await runsOn(after))).toEqual([]);
    }),
  );
}, 150_000);

/** As in the worker. */
const payloadOf = ({ name, at }: { name: string; at: Date }) => `${name} ${at.getTime()}`;

/** Cuts half of the library's connections; returns how many. */
async function cutConnections(redis: Redis): Promise<number> {
  const list = String(await redis.client("LIST")).split("\n");
  const ours = list.filter((one) => one.includes(" name=delayline:") && Math.random() < 0.5);
  for (const one of ours) await redis.client("KILL", "ID", /^id=(\d+)/.exec(one)?.[1] ?? "");
  return ours.length;
}

/** The ticks in ready payloads, by their schedules. */
function ticksIn(payloads: readonly string[]): Map<string, number[]> {
  const found = new Map<string, number[]>();
  for (const payload of payloads) {
    const [schedule = "", tick] = payload.split(" ");
    found.set(schedule, [...(found.get(schedule) ?? []), Number(tick)]);
  }
  return found;
}

/** The ticks that are missing, or came twice: those at another distance from the one before. */
function wrongIn(found: ReadonlyMap<string, readonly number[]>): string[] {
  return [...found].flatMap(([schedule, all]) => {
    const ticks = all.toSorted((a, b) => a - b);
    return ticks
      .filter((tick, i) => i > 0 && tick - (ticks[i - 1] as number) !== EVERY)
      .map((tick) => `${schedule} at ${tick - (ticks[0] as number)}`);
  });
}

const isReady = (child: Child) => child.next((word) => word === "ready", 30_000);
