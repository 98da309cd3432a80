import { expect, test } from "vitest";
import { newConsumerName, visibilityTimeoutOf } from "../../../src/reliable/group/consumer-name.ts";

const UUID = "9b2f0c1e-5a7d-4e3b-8f60-0123456789ab";

test.each([
  [1, 1],
  [5_000, 5_000],
  [1_000.2, 1_001],
  [8_990_000_000_000_000, 8_990_000_000_000_000],
])("a name contains its timeout of %d ms", (timeout, expected) => {
  for (const maxDeliveries of [1, 8, 1_000_000]) {
    const name = newConsumerName(timeout, maxDeliveries);
    expect(name).toMatch(/^delayline:\d+:\d+:[\da-f-]{36}$/);
    expect(name).toContain(`:${maxDeliveries}:`);
    expect(visibilityTimeoutOf(name)).toBe(expected);
  }
});

test("a name of an older release has a timeout only", () => {
  expect(visibilityTimeoutOf(`delayline:5000:${UUID}`)).toBe(5_000);
});

test("no two names are the same", () => {
  expect(newConsumerName(5_000, 8)).not.toBe(newConsumerName(5_000, 8));
});

test.each([
  "",
  "worker-1",
  "delayline",
  "delayline:5000",
  "delayline:5000:",
  "delayline:5000:worker",
  `delayline::${UUID}`,
  `delayline:0:${UUID}`,
  `delayline:-5:${UUID}`,
  `delayline:5e3:${UUID}`,
  `delayline:5.5:${UUID}`,
  `delayline: 5:${UUID}`,
  `delayline:12345678901234567:${UUID}`,
  `delayline:5000:0:${UUID}`,
  `delayline:5000:12345678:${UUID}`,
  `delayline:5000:8:8:${UUID}`,
  `delayline:5000::${UUID}`,
  `delayline:5000:${UUID}:2`,
  `delayline:5000:${UUID}\n`,
  `my-delayline:5000:${UUID}`,
  `\ndelayline:5000:${UUID}`,
])("%j is foreign", (name) => {
  expect(visibilityTimeoutOf(name)).toBeUndefined();
});
