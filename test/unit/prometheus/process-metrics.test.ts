import { expect, test } from "vitest";
import { Counters } from "../../../src/observe/counters.ts";
import {
  bucketsOf,
  countsOf,
  PROCESS_COUNTERS,
  PROCESS_HISTOGRAMS,
} from "../../../src/adapters/prometheus/metrics.ts";

/** The counts of a process for the queue "a". */
function counted(count: (counters: Counters) => void) {
  const counters = new Counters("orders");
  count(counters);
  return new Map([["a", counters.snapshot()]]);
}

test("every number of the counters is a metric", () => {
  const names = Object.keys(new Counters("orders").snapshot());
  const used = [...PROCESS_COUNTERS, ...PROCESS_HISTOGRAMS].map(({ of }) => of);
  expect(used.toSorted()).toEqual(names.toSorted());
});

test("counters", () => {
  const all = counted((counters) => (counters.reclaimed = 3));
  const reclaimed = PROCESS_COUNTERS.find(({ of }) => of === "reclaimed");
  expect(reclaimed && countsOf(reclaimed, all)).toEqual([{ labels: { queue: "a" }, value: 3 }]);
});

test("histogram buckets count the values up to each bound, in seconds", () => {
  const all = counted(({ handling }) => {
    handling.record(0.5);
    handling.record(1500, 2);
    handling.record(1e9);
  });
  const handling = PROCESS_HISTOGRAMS.find(({ of }) => of === "handling");
  const samples = handling ? bucketsOf(handling, "x", all) : [];

  const buckets = samples.filter(({ metricName }) => metricName === "x_bucket");
  const of = (le: number | string) => buckets.find(({ labels }) => labels["le"] === le)?.value;
  expect([of(0.001), of(1), of(2), of(86_400), of("+Inf")]).toEqual([1, 1, 3, 3, 4]);
  const rest = samples.filter((sample) => !buckets.includes(sample));
  expect(rest).toEqual([
    { labels: { queue: "a" }, value: 1_000_003.0005, metricName: "x_sum" },
    { labels: { queue: "a" }, value: 4, metricName: "x_count" },
  ]);
});

test("a histogram of nothing is left out", () => {
  const all = counted(() => {});
  expect(PROCESS_HISTOGRAMS.flatMap((histogram) => bucketsOf(histogram, "x", all))).toEqual([]);
});
