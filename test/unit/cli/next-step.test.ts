import { expect, test } from "vitest";
import { nextStep } from "../../../src/cli/next-step.ts";
import type { Sighting } from "../../../src/inspect/sighting.ts";

const NOW = 1_795_359_664_000;
const seen = { queue: "orders", id: "the-id", deadline: NOW + 1000 } as Sighting;

test.each<[string, Partial<Sighting>, string | undefined]>([
  ["dead", { state: "dead" }, "delayline dead redrive orders the-id"],
  ["retrying", { state: "retrying" }, "delayline deliver-now orders the-id"],
  ["delayed", { state: "delayed" }, "deliver-now, reschedule or cancel orders the-id"],
  ["overdue", { state: "delayed", deadline: NOW - 60_000 }, "Why: delayline doctor orders"],
  ["long ready", { state: "ready", readyAt: NOW - 90_000 }, "delayline doctor orders"],
  ["just ready", { state: "ready", readyAt: NOW - 100 }, undefined],
  ["in flight", { state: "in flight", readyAt: NOW - 100 }, undefined],
  ["strange", { state: "dead", queue: "my orders" }, 'redrive "my orders" the-id'],
])("what to do about a message that is %s", (_, message, expected) => {
  const step = nextStep({ ...seen, ...message }, NOW);
  if (expected === undefined) expect(step).toBeUndefined();
  else expect(step).toContain(expected);
});
