import { expect, test } from "vitest";
import { eventually } from "../../helpers/eventually.ts";

test("waits until a condition is true", async () => {
  let tries = 0;
  await eventually(() => ++tries === 3);
  expect(tries).toBe(3);
});

test("waits until an assertion no longer throws", async () => {
  let tries = 0;
  await eventually(async () => {
    tries++;
    expect(tries).toBe(3);
  });
  expect(tries).toBe(3);
});

test("fails with the name of the condition and how the last try failed", async () => {
  const waiting = eventually(
    () => {
      throw new Error("two are missing");
    },
    { within: 20, what: "all messages arrive" },
  );
  await expect(waiting).rejects.toThrow(
    "not within 20 ms: all messages arrive; the last time it failed with: two are missing",
  );
});
