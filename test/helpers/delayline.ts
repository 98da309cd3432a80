import { expect, onTestFinished } from "vitest";
import { Delayline } from "../../src/index.ts";
import type { RecoveredEvent } from "../../src/events.ts";
import type { DelaylineError, DelaylineOptions } from "../../src/index.ts";
import { redisUrl } from "./redis.ts";

/** A client that records what it reports. */
export class TestLine extends Delayline {
  /** The `error` events so far. */
  readonly errors: DelaylineError[] = [];
  /** The `recovered` events so far. */
  readonly recoveries: RecoveredEvent[] = [];

  constructor(options: DelaylineOptions = {}) {
    super({ redis: redisUrl(), unreachableTimeout: 2_000, ...options });
    this.on("error", (error) => this.errors.push(error));
    this.on("recovered", (recovery) => this.recoveries.push(recovery));
  }
}

/**
 * Opens a client, on the shared Redis by default, and closes it when the test has finished.
 *
 * An `error` event fails the test.
 */
export function newLine(options?: DelaylineOptions): TestLine {
  const line = newLineThatMayFail(options);
  onTestFinished(async () => {
    await line.close();
    expect(line.errors).toEqual([]);
  });
  return line;
}

/** Like {@link newLine}, for a test that causes errors: they are recorded in {@link TestLine.errors} and fail nothing. */
export function newLineThatMayFail(options?: DelaylineOptions): TestLine {
  const line = new TestLine(options);
  onTestFinished(() => line.close());
  return line;
}
