import { expect, test } from "vitest";
import { NO_NUMBERS } from "../../../src/nouns/numbers.ts";
import { mergeStats, type QueueStats } from "../../../src/observe/queue-stats.ts";

const STATS: QueueStats = {
  kind: "plain",
  isPaused: false,
  pauseReason: undefined,
  serverTime: 0,
  ...NO_NUMBERS,
  perPartition: [],
};
const told = { ...STATS, kind: "reliable", readied: 5, finished: 3 } as const;
const untold = { ...STATS, kind: "reliable" } as const;

test.each([
  ["all tell", [told, told], 10, 6],
  ["one has no stream", [told, STATS], 5, 3],
  ["one does not tell", [told, untold], undefined, undefined],
  ["none has a stream", [STATS, STATS], undefined, undefined],
])("what has become ready in all partitions: %s", (_, all, readied, finished) => {
  expect(mergeStats(all)).toMatchObject({ readied, finished });
});

test("the oldest message in flight of all partitions", () => {
  const ages = [undefined, 5, 9].map((oldestInFlightAge) => ({ ...told, oldestInFlightAge }));
  expect(mergeStats(ages).oldestInFlightAge).toBe(9);
  expect(mergeStats([STATS, untold]).oldestInFlightAge).toBeUndefined();
});
