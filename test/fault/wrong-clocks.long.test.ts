import { expect, test } from "vitest";
import { startChild } from "../helpers/child.ts";
import { newRedis, redisUrl, uniqueName } from "../helpers/redis.ts";
import { missing } from "../helpers/ledger.ts";
import { serverTime } from "../helpers/server-time.ts";

const worker = new URL("workers/wrong-clock.ts", import.meta.url);
const HOUR = 3_600_000;
const COUNT = 200;

type FromWorker = { now: number } | { deadlines: [string, number][] };

test.for([
  { who: "a worker whose clock is an hour ahead", shifts: [HOUR] },
  { who: "a worker whose clock is an hour behind", shifts: [-HOUR] },
  { who: "both of them together", shifts: [HOUR, -HOUR] },
])("$who: 0 early, 0 late", async ({ shifts }) => {
  const name = uniqueName();
  const workers = shifts.map((shift) =>
    startChild<FromWorker>(worker, {
      env: { REDIS: redisUrl(), QUEUE: name, COUNT: String(COUNT), CLOCK_SHIFT: String(shift) },
    }),
  );
  for (const [i, child] of workers.entries()) {
    const hello = await child.next();
    // Their clocks are wrong indeed.
    const ahead = ("now" in hello ? hello.now : NaN) - Date.now();
    expect(Math.abs(ahead - (shifts[i] ?? 0))).toBeLessThan(60_000);
    await child.send("go");
  }

  // Only the workers move messages. This test only notes when Redis had them ready.
  const redis = newRedis();
  const arrivedBy = new Map<string, number>();
  while (arrivedBy.size < shifts.length * COUNT) {
    const popped = await redis.blpop(name, 20);
    if (popped === null) break;
    arrivedBy.set(popped[1], await serverTime(redis));
  }

  const deadlines = new Map<string, number>();
  for (const child of workers) {
    const answer = await child.next((message) => "deadlines" in message);
    if ("deadlines" in answer)
      for (const [n, deadline] of answer.deadlines) deadlines.set(n, deadline);
  }
  expect(missing(deadlines.keys(), arrivedBy.keys())).toEqual([]);
  const lateness = [...arrivedBy].map(([n, at]) => at - (deadlines.get(n) ?? NaN));
  expect(Math.min(...lateness)).toBeGreaterThanOrEqual(0);
  // An hour, if clocks mattered. This much allows for a busy machine.
  expect(Math.max(...lateness)).toBeLessThan(20_000);
});
