import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { collectMetrics } from "../../../src/prometheus/index.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { uniqueName } from "../../helpers/redis.ts";
import { scrape } from "./exposition.ts";
test("what this process has done", async () => {
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
  console.log(await registry.metrics());
  await subscription.close();
});
