import { Registry, type OpenMetricsContentType } from "prom-client";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import {
  collectMetrics,
  type CollectMetricsOptions,
} from "../../../src/adapters/prometheus/index.ts";
import type { Delayline } from "../../../src/index.ts";
import { replaceRuntime } from "../../../src/time/runtime.ts";
import { newLine, newLineThatMayFail } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
import { followGlobals } from "../../helpers/follow-globals.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";
import { scrape } from "./exposition.ts";

/** Metrics in a registry of their own, until the test has finished. */
function collect(line: Delayline, options: Partial<CollectMetricsOptions> = {}) {
  const registry = new Registry();
  const metrics = collectMetrics(line, { registry, queues: [], ...options });
  onTestFinished(() => metrics.close());
  return { registry, metrics };
}

test("dueWithin counts what is due, or falls due within so many seconds", async () => {
  const name = uniqueName();
  const orders = newLine({ transfer: false }).getDelayedQueue<number>(name);
  for (const delay of [0, 30_000, 50_000, 200_000, 900_000]) await orders.offer(delay, delay);
  const { registry } = collect(newLine(), { queues: [name], dueWithin: [60_000, 300_000, 60_000] });
  const found = await scrape(registry);
  expect(found.get(`delayline_due_soon{queue="${name}",within="60"}`)).toBe(3);
  expect(found.get(`delayline_due_soon{queue="${name}",within="300"}`)).toBe(4);
});

test.each([
  [[500], "dueWithin must be a whole number between 1000"],
  [["5m"], "dueWithin must be a whole number"],
  [[1000, 2000, 3000, 4000, 5000, 6000], "the number of dueWithin must be"],
  [300_000, "dueWithin must be"],
])("dueWithin %j is refused", (dueWithin, message) => {
  expect(() => collect(newLine(), { dueWithin: dueWithin as number[] })).toThrow(message);
});

describe("the numbers of queues", () => {
  test("include a plain queue, read by a client that does not have it open", async () => {
    const name = uniqueName();
    const orders = newLine({ transfer: false }).getDelayedQueue<number>(name);
    await orders.offer(1, 0);
    await orders.offer(2, 60_000);
    const { registry } = collect(newLine(), { queues: [name] });
    const deadline = (await orders.stats()).nextDeadline ?? 0;

    const first = await scrape(registry);

    expect(Object.fromEntries(first)).toEqual({
      [`delayline_delayed{queue="${name}"}`]: 2,
      [`delayline_overdue{queue="${name}"}`]: 1,
      [`delayline_overdue_seconds{queue="${name}"}`]: expect.closeTo(0, 0),
      [`delayline_next_deadline_timestamp_seconds{queue="${name}"}`]: deadline / 1000,
      [`delayline_waiting{queue="${name}"}`]: 0,
      [`delayline_ready{queue="${name}"}`]: 0,
      [`delayline_in_flight{queue="${name}"}`]: 0,
      [`delayline_retries{queue="${name}"}`]: 0,
      [`delayline_dead{queue="${name}"}`]: 0,
      [`delayline_dropped{queue="${name}"}`]: 0,
      [`delayline_dropped_late{queue="${name}"}`]: 0,
      [`delayline_dropped_overlap{queue="${name}"}`]: 0,
      [`delayline_quarantined{queue="${name}"}`]: 0,
      [`delayline_remembered{queue="${name}"}`]: 0,
      [`delayline_schedules{queue="${name}"}`]: 0,
      [`delayline_unplanned{queue="${name}"}`]: 0,
      [`delayline_listeners{queue="${name}"}`]: 0,
      [`delayline_paused{queue="${name}"}`]: 0,
      delayline_scrape_errors_total: 0,
    });
    // Each scrape reads again.
    await eventually(async () => {
      const late = (await scrape(registry)).get(`delayline_overdue_seconds{queue="${name}"}`);
      return (late ?? 0) > 0.05;
    });
  });

  test("include a reliable queue that is paused", async () => {
    const line = newLine();
    const notices = line.getReliableQueue<number>(uniqueName());
    const { registry } = collect(line, { queues: [notices.name] });
    await notices.offerMany([1, 2, 3].map((payload) => ({ payload, delay: 0 })));
    const delivery = await notices.take();
    await delivery.reject("no");
    await notices.take();
    await notices.pause();

    const found = await scrape(registry);

    const label = `{queue="${notices.name}"}`;
    expect(found.get(`delayline_in_flight${label}`)).toBe(1);
    expect(found.get(`delayline_dead${label}`)).toBe(1);
    expect(found.get(`delayline_consumers${label}`)).toBe(1);
    expect(found.get(`delayline_oldest_ready_age_seconds${label}`)).toBeGreaterThan(0);
    expect(found.get(`delayline_oldest_in_flight_age_seconds${label}`)).toBeGreaterThan(0);
    expect(found.get(`delayline_paused${label}`)).toBe(1);
  });

  test("include each partition of a queue, which the client may still open in any form", async () => {
    const name = uniqueName();
    const orders = newLine({ transfer: false }).getDelayedQueue<number>(name, { partitions: 2 });
    for (let i = 0; i < 20; i++) await orders.offer(i, 60_000, { key: `order:${i}` });
    const line = newLine();
    const { registry } = collect(line, { queues: [name, `${name}-other`] });

    const found = await scrape(registry);

    const of = (partition: string) =>
      found.get(`delayline_delayed{queue="${name}",partition="${partition}"}`) ?? 0;
    expect(of("0")).toBeGreaterThan(0);
    expect(of("1")).toBeGreaterThan(0);
    expect(of("0") + of("1")).toBe(20);
    expect(found.has(`delayline_delayed{queue="${name}"}`)).toBe(false);
    expect(found.get(`delayline_delayed{queue="${name}-other"}`)).toBe(0);
    expect(await line.getDelayedQueue(name, { partitions: 2 }).size()).toBe(20);
    expect(await line.getDelayedQueue(`${name}-other`, { partitions: 2 }).size()).toBe(0);
  });

  test('"all" covers the queues in Redis, and the open ones', async () => {
    const server = await startOwnServer();
    const line = newLine({ redis: server.url });
    await newLine({ redis: server.url }).getDelayedQueue("there").offer(1, 60_000);
    line.getDelayedQueue("open");
    const { registry } = collect(line, { queues: "all" });

    const found = await scrape(registry);

    expect(found.get('delayline_delayed{queue="there"}')).toBe(1);
    expect(found.get('delayline_delayed{queue="open"}')).toBe(0);
  });
});

describe("trouble", () => {
  test("a queue that Redis refuses is left out and counted, and the others are there", async () => {
    const [good, bad] = [uniqueName(), uniqueName()];
    const redis = newRedis();
    await redis.set(`delayline_quarantine:{${bad}}`, "no list");
    const errors: unknown[][] = [];
    const { registry } = collect(newLine(), {
      queues: [bad, good],
      onError: (error, queue) => {
        errors.push([String(error), queue]);
        throw new Error("of the user");
      },
    });

    await scrape(registry);
    const found = await scrape(registry);

    expect(found.get(`delayline_delayed{queue="${good}"}`)).toBe(0);
    expect(found.has(`delayline_delayed{queue="${bad}"}`)).toBe(false);
    expect(found.get(`delayline_scrape_errors_total{queue="${bad}"}`)).toBe(2);
    expect(found.has(`delayline_scrape_errors_total{queue="${good}"}`)).toBe(false);
    const refused = [expect.stringContaining("WRONGTYPE"), bad];
    expect(errors).toEqual([refused, refused]);
    await redis.del(`delayline_quarantine:{${bad}}`);
  });

  test("errors of a queue are forgotten when it is gone", async () => {
    const server = await startOwnServer();
    const redis = newRedis(server.url);
    await redis.zadd("redisson_delay_queue_timeout:{bad}", 1, "no message");
    await redis.set("delayline_quarantine:{bad}", "no list");
    const { registry } = collect(newLine({ redis: server.url }), { queues: "all" });
    const bad = 'delayline_scrape_errors_total{queue="bad"}';
    expect((await scrape(registry)).get(bad)).toBe(1);

    await redis.flushall();
    // The queues are listed once a minute.
    const now = performance.now.bind(performance);
    followGlobals();
    vi.spyOn(performance, "now").mockImplementation(() => now() + 61_000);
    onTestFinished(() => {
      vi.restoreAllMocks();
      replaceRuntime();
    });
    await eventually(async () => !(await scrape(registry)).has(bad));
  });

  test.each(["all", ["a", "b"]] as const)(
    "a scrape ends with its timeout while Redis hangs, and the next one works as before: %s",
    async (queues) => {
      const server = await startOwnServer();
      const line = newLineThatMayFail({ redis: server.url, callTimeout: 30_000 });
      await line.getDelayedQueue("a").offer(1, 60_000);
      const { registry } = collect(line, { queues, timeout: 1500 });
      expect((await scrape(registry)).get('delayline_delayed{queue="a"}')).toBe(1);

      server.pause();
      const startedAt = performance.now();
      const found = await scrape(registry);
      // Not after the full time of its calls.
      expect(performance.now() - startedAt).toBeLessThan(15_000);
      expect(found.has('delayline_delayed{queue="a"}')).toBe(false);
      expect(found.get('delayline_offered_total{queue="a"}')).toBeDefined();
      expect(found.get('delayline_scrape_errors_total{queue="a"}')).toBe(1);

      server.resume();
      await eventually(async () => {
        expect((await scrape(registry)).get('delayline_delayed{queue="a"}')).toBe(1);
      });
    },
  );

  test("close ends a hanging scrape and removes the metrics, and others may be registered then", async () => {
    const server = await startOwnServer();
    const line = newLineThatMayFail({ redis: server.url });
    const { registry, metrics } = collect(line, { queues: ["a"], timeout: 60_000 });
    expect(() => collect(line, { registry })).toThrow("already has delayline_delayed");
    await scrape(registry);
    server.pause();
    const hanging = registry.metrics();

    await metrics.close();
    await metrics.close();

    expect(await hanging).not.toContain('delayline_delayed{queue="a"}');
    expect(await registry.metrics()).toBe("\n");
    collect(line, { registry });
    server.resume();
  });
});

test("totals are counters, what has buckets is a histogram, and everything else a gauge", async () => {
  const { registry } = collect(newLine());
  const text = await registry.metrics();
  const types = Array.from(text.matchAll(/^# TYPE (\S+) (\S+)$/gm), ([, name, type]) => [
    name,
    type,
  ]);
  const histograms = ["system_lateness", "waited", "backlog_lateness", "handling"];
  const expected = types.map(([name = ""]) => {
    if (name.endsWith("_total")) return [name, "counter"];
    const isHistogram = histograms.some((one) => name === `delayline_${one}_seconds`);
    return [name, isHistogram ? "histogram" : "gauge"];
  });
  expect(types.length).toBeGreaterThan(20);
  expect(types).toEqual(expected);
});

test("an OpenMetrics registry, its own labels, and another prefix work", async () => {
  const line = newLine();
  const { name } = line.getDelayedQueue(uniqueName());
  const registry = new Registry<OpenMetricsContentType>();
  registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
  registry.setDefaultLabels({ app: "shop" });
  collect(line, { registry, queues: [name], prefix: "shop_" });

  const found = await scrape(registry);
  const text = await registry.metrics();

  expect(found.get(`shop_delayed{queue="${name}",app="shop"}`)).toBe(0);
  expect(found.get(`shop_offered_total{queue="${name}",app="shop"}`)).toBeDefined();
  const families = text.match(/^# TYPE \S+/gm) ?? [];
  expect(new Set(families).size).toBe(families.length);
});

test.each([
  [{ queues: "some" }, "queues must be an array"],
  [{ queues: ["a}b"] }, "a}b"],
  [{ prefix: "1st" }, 'prefix must be the beginning of a metric\'s name, got "1st"'],
  [{ timeout: 0 }, "timeout must be a whole number between 1 and 60000, got 0"],
  [{ registry: {} }, "registry must be a Registry of prom-client, got object"],
  [{ labels: [] }, 'got "labels"'],
])("illegal options are refused: %o", (options, message) => {
  expect(() => collect(newLine(), options as object)).toThrow(message);
});
