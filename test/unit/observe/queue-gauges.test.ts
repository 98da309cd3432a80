import { expect, test } from "vitest";
import { QUEUE_GAUGES } from "../../../src/observe/queue-gauges.ts";

test("the dashboard's page, which can import nothing of ours, calls the numbers by the same names", async () => {
  const page = new URL("../../../src/tools/dashboard/page/data/numbers.js", import.meta.url);
  const { LABELS } = (await import(page.href)) as { LABELS: Readonly<Record<string, string>> };
  // The page shows how long messages have been overdue beside their number.
  const { overdueBy: _, ...gauges } = QUEUE_GAUGES;
  const labels = Object.entries(gauges).map(([name, { label }]) => [
    name,
    `${label.charAt(0).toUpperCase()}${label.slice(1)}`,
  ]);
  expect(Object.fromEntries(labels)).toEqual(LABELS);
});
