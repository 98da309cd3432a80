import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { expect, onTestFinished, test } from "vitest";
import type { ScriptEvent } from "../../../src/events.ts";
import { callsOf } from "../../helpers/calls.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";
import { MINUTE, newClock, SECOND } from "../../helpers/test-clock.ts";

test("without schedules, no script and no command more: a sweep asks for both in one question", async () => {
  const server = await startOwnServer();
  const redis = newRedis(server.url);
  const orders = newLine({ redis: server.url }).getDelayedQueue<string>(uniqueName("cost"));
  const scripts: string[] = [];
  const hear = (run: unknown) => scripts.push((run as ScriptEvent).script);
  subscribe("delayline:script", hear);
  onTestFinished(() => void unsubscribe("delayline:script", hear));
  const sweeps = () => scripts.filter((script) => script.startsWith("sweep")).length;
  await eventually(() => sweeps() > 0);
  await redis.config("RESETSTAT");
  const before = sweeps();
  for (let i = 1; i <= 5; i++) {
    await orders.resume();
    await eventually(() => sweeps() >= before + i);
  }
  const { exists, zrangebyscore = 0, evalsha = 0 } = await callsOf(redis);
  // Each resume is a script, and a second one that notes it in the log.
  expect(evalsha).toBe(sweeps() - before + 2 * 5);
  // As many as before there were schedules: one about these and the pause, and three about other keys.
  expect(exists).toBe(4 * (sweeps() - before));
  expect(zrangebyscore).toBe(0);
  expect(scripts.filter((script) => script.includes("schedule"))).toEqual([]);
});

test("a schedule of 1 s costs at most three commands for each tick, besides those of the transfer", async () => {
  const server = await startOwnServer();
  const redis = newRedis(server.url);
  const clock = await newClock({ now: "2026-06-01T00:00:00.500Z" });
  const line = newLine({ redis: server.url });
  const measure = async () => {
    await clock.advance(5 * SECOND);
    await redis.config("RESETSTAT");
    await clock.advance(5 * MINUTE);
    const calls = Object.entries(await callsOf(redis));
    // The clock of the test asks for the times of keys, by EVAL, and each script for one of these times.
    const own = ["eval", "pttl", "pexpire", "time"];
    return calls.reduce((sum, [name, count]) => sum + (own.includes(name) ? 0 : count), 0);
  };
  const ordinary = line.getDelayedQueue<string>(uniqueName("cost"));
  await ordinary.offerMany(
    Array.from({ length: 400 }, (_, i) => ({
      payload: "x",
      delay: (i + 1) * SECOND,
      key: `k${i}`,
    })),
  );
  const moved = await measure();
  await ordinary.clear();
  const orders = line.getDelayedQueue<string>(uniqueName("cost"));
  await orders.schedules.upsert("s", { every: SECOND, payload: "x", misfire: "all" });
  const more = ((await measure()) - moved) / 300;
  expect(more).toBeGreaterThan(0.5);
  expect(more).toBeLessThan(2);
});
