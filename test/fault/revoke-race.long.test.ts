import { expect, it } from "vitest";
import { raceRevokes } from "./revoke-race.ts";

it.each([{ partitions: undefined }, { partitions: 3 }])(
  "5,000 revokes against handlers that begin and end agree with their records ($partitions partitions)",
  async ({ partitions }) => {
    const { stages } = await raceRevokes(5000, partitions === undefined ? {} : { partitions });
    for (const stage of ["running", "ready", "retrying", "gone"] as const)
      expect(stages[stage]).toBeGreaterThan(20);
  },
  240_000,
);

it("3,000 revokes while the number of partitions changes agree with the handlers' records", async () => {
  const { stages } = await raceRevokes(3000, { partitions: 2 }, async (line, name) => {
    for (const count of [5, 3, 6, 2]) await line.setPartitions(name, count);
  });
  for (const stage of ["running", "ready", "retrying", "gone"] as const)
    expect(stages[stage]).toBeGreaterThan(20);
}, 240_000);
