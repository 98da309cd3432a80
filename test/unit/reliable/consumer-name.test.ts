import { hostname } from "node:os";
import { expect, test } from "vitest";
import {
  newConsumerName,
  processOf,
  leaseTimeoutOf,
} from "../../../src/reliable/group/consumer-name.ts";

const UUID = "9b2f0c1e-5a7d-4e3b-8f60-0123456789ab";

test.each([
  [1, 1],
  [5_000, 5_000],
  [1_000.2, 1_001],
  [8_990_000_000_000_000, 8_990_000_000_000_000],
])("a name contains its timeout of %d ms", (timeout, expected) => {
  for (const maxAttempts of [1, 8, 1_000_000]) {
    const name = newConsumerName(timeout, maxAttempts);
    expect(name).toMatch(/^delayline:\d+:\d+:[\w.-]+\/\d+:[\da-f-]{36}$/);
    expect(name).toContain(`:${maxAttempts}:`);
    expect(leaseTimeoutOf(name)).toBe(expected);
  }
});

test.each([`delayline:5000:${UUID}`, `delayline:5000:8:${UUID}`])(
  "a name of an older release has a timeout, and no process: %s",
  (name) => {
    expect(leaseTimeoutOf(name)).toBe(5_000);
    expect(processOf(name)).toBeUndefined();
  },
);

test("a name contains its process", () => {
  const host = hostname()
    .replaceAll(/[^\w.-]/g, "")
    .slice(0, 63);
  expect(processOf(newConsumerName(5_000, 8))).toEqual({ host, pid: process.pid });
  expect(processOf(`delayline:5000:8:web-1.eu/17:${UUID}`)).toEqual({ host: "web-1.eu", pid: 17 });
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
  `delayline:5000:8:web-1:${UUID}`,
  `delayline:5000:8:/17:${UUID}`,
  `delayline:5000:8:web 1/17:${UUID}`,
  `delayline:5000:8:${"h".repeat(64)}/17:${UUID}`,
  `delayline:5000::${UUID}`,
  `delayline:5000:${UUID}:2`,
  `delayline:5000:${UUID}\n`,
  `my-delayline:5000:${UUID}`,
  `\ndelayline:5000:${UUID}`,
])("%j is foreign", (name) => {
  expect(leaseTimeoutOf(name)).toBeUndefined();
});
