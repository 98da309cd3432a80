import { expect, test } from "vitest";
import { nextStep } from "../../../src/tools/cli/session/message-view.ts";
import type { Sighting } from "../../../src/tools/view/sighting.ts";

const NOW = 1_795_359_664_000;
const seen = { queue: "orders", id: "the-id", deadline: NOW + 1000 } as Sighting;
const IDLE = { serverTime: NOW, waiting: 0 };
const unreadable = { state: "dead", reason: "unreadable" } as const;

test.each<[string, Partial<Sighting>, string]>([
  ["dead", { state: "dead" }, "To deliver it again: dead redrive orders the-id"],
  ["unreadable", { ...unreadable, diedAt: NOW + 1000 }, "To remove it: dead remove orders the-id"],
  ["rejected as unreadable", { ...unreadable, diedAt: NOW + 2000 }, "dead redrive orders the-id"],
  ["retrying", { state: "retrying" }, "deliver-now orders the-id"],
  ["an overdue retry", { state: "retrying", deadline: NOW - 60_000 }, "out why: doctor orders"],
  ["delayed", { state: "delayed" }, "deliver-now and reschedule): cancel orders the-id"],
  ["overdue", { state: "delayed", deadline: NOW - 60_000 }, "out why: doctor orders"],
  ["waiting", { state: "delayed", isWaiting: true }, "To see for which: flow orders"],
  ["long ready", { state: "ready", readyAt: NOW - 300_000 }, "(see also revoke): doctor orders"],
  ["just ready", { state: "ready", readyAt: NOW - 100 }, "To stop it: revoke orders the-id"],
  ["running", { state: "in flight", readyAt: NOW - 100 }, "To stop it: revoke orders the-id"],
  ["held back", { state: "in flight" }, "To stop it: revoke orders the-id"],
  [
    "running for long",
    { state: "in flight", readyAt: NOW - 300_000 },
    "(see also doctor): revoke orders the-id",
  ],
])("the next step for a message that is %s", (_, message, expected) => {
  const step = nextStep({ ...seen, ...message }, IDLE, (...words) => words.join(" "));
  expect(step).toContain(expected);
});

test("the next step for a message that may wait for its turn is to look at the flow", () => {
  const numbers = { serverTime: NOW, waiting: 5 };
  const stepOf = (deadline: number) =>
    nextStep({ ...seen, state: "delayed", deadline }, numbers, (...words) => words.join(" "));
  expect(stepOf(NOW - 60_000)).toContain("flow orders");
  expect(stepOf(NOW + 60_000)).toContain("cancel orders");
});

test("there is no next step where the command cannot be pasted", () => {
  expect(nextStep({ ...seen, state: "dead" }, IDLE, () => undefined)).toBeUndefined();
});
