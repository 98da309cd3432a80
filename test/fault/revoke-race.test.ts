import { expect, it } from "vitest";
import { raceRevokes } from "./revoke-race.ts";

it("400 revokes against handlers that begin and end agree with their records", async () => {
  const { stages, queue } = await raceRevokes(400);
  // Otherwise there was no race.
  expect(stages.running).toBeGreaterThan(20);
  expect(queue.counters).toMatchObject({ failed: 0 });
});
