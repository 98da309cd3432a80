import { once, type EventEmitter } from "node:events";
import { expect, onTestFinished, test } from "vitest";
import { Delayline } from "../../../src/index.ts";

/** A client that never connects: it opens no queue. */
function newLine(): Delayline {
  const line = new Delayline();
  onTestFinished(() => line.close());
  return line;
}

test.each([
  ["completed", "handled(idOrKey) of the queue tells when one was handled"],
  ["job failed", "the event error tells of each attempt that failed"],
  ["errors", "did you mean error?"],
  ["ready", "it connects by itself"],
])("the event %s is refused, however it is listened to", async (event, wayOut) => {
  const line = newLine() as EventEmitter;
  for (const method of ["on", "once", "addListener", "prependListener"] as const) {
    expect(() => line[method](event, () => {})).toThrow(wayOut);
  }
  await expect(once(line, event)).rejects.toThrow(wayOut);
  expect(line.listenerCount(event)).toBe(0);
});

test("events that there are, and symbols, are heard", () => {
  const line = newLine();
  for (const event of ["error", "recovered", "restored", Symbol("mine")]) {
    line.on(event as "error", () => {});
    expect(line.listenerCount(event as "error")).toBe(1);
  }
});
