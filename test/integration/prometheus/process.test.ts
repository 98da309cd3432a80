import { Registry } from "prom-client";
import { expect, test, vi } from "vitest";
import { collectMetrics } from "../../../src/adapters/prometheus/index.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
import { uniqueName } from "../../helpers/redis.ts";
import { scrape } from "./exposition.ts";
test("the exporter shows this process's counters", async () => {
  const line = newLine();
  const notices = line.getReliableQueue<number>(uniqueName());
  const registry = new Registry();
  await using _ = collectMetrics(line, { registry, queues: [] });
  const subscription = notices.subscribe(() => {});
  await notices.offer(1, 10);
  const label = `{queue="${notices.name}"}`;
  await eventually(async () => {
    const found = await scrape(registry);
    expect(found.get(`delayline_acknowledged_total${label}`)).toBe(1);
    expect(found.get(`delayline_offered_total${label}`)).toBe(1);
    expect(found.get(`delayline_transferred_total${label}`)).toBe(1);
    expect(found.get(`delayline_system_lateness_seconds_count${label}`)).toBe(1);
    expect(found.get(`delayline_handling_seconds_bucket{queue="${notices.name}",le="+Inf"}`)).toBe(
      1,
    );
    expect(found.get(`delayline_delayed${label}`)).toBeUndefined();
  });
  await subscription.close();
});

test("one scrape reads the counters once", async () => {
  const { url } = await startOwnServer();
  const line = newLine({ redis: url });
  const orders = line.getDelayedQueue<number>(uniqueName(), { transfer: false });
  const registry = new Registry();
  await using _ = collectMetrics(line, { registry, queues: "all" });
  // The first scrape waits for the list of queues.
  await scrape(registry);
  const read = vi.spyOn(line, "counters", "get");

  await scrape(registry);
  expect(read).toHaveBeenCalledTimes(1);
  await orders.offer(1, 60_000);
  const found = await scrape(registry);
  expect(read).toHaveBeenCalledTimes(2);
  expect(found.get(`delayline_offered_total{queue="${orders.name}"}`)).toBe(1);
});
