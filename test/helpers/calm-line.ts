import { expect, onTestFinished } from "vitest";
import type { DelaylineOptions } from "../../src/index.ts";
import { newLine, type TestLine } from "./delayline.ts";

/** A client for a test in which nothing goes wrong: an `error` event fails the test. */
export function newCalmLine(options?: DelaylineOptions): TestLine {
  const line = newLine(options);
  onTestFinished(async () => {
    await line.close();
    expect(line.errors).toEqual([]);
  });
  return line;
}
