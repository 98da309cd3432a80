import { expect, test } from "vitest";
import { busyNote } from "../../../src/tools/cli/demo/busy.ts";
import { takenInWords } from "../../../src/tools/cli/demo/order.ts";

const TAKEN = { what: "taken", order: 7, attempt: 1, at: 10_913 } as const;

test("the lateness of an order is that of a free worker", () => {
  expect(takenInWords("worker-1", { ...TAKEN, freeSince: 9000 }, 10_911)).toBe(
    "order:7 is due: worker-1 has it 2 ms later",
  );
});

test("an order that waited for a busy worker shows no lateness", () => {
  expect(takenInWords("worker-1", { ...TAKEN, freeSince: 10_912 }, 10_000)).toBe(
    "order:7 was due before: worker-1 has it as soon as it is free",
  );
});

test("a busy machine is named beside the figures that it makes worse", () => {
  expect(busyNote([8.21], 2)).toEqual([
    "This machine is busy: a load of 8.2 on 2 cores. The latenesses here are its, too.",
  ]);
  expect(busyNote([2], 2)).toEqual([]);
  expect(busyNote([0, 0, 0], 2)).toEqual([]);
});
