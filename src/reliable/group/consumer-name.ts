import { randomUUID } from "node:crypto";

/**
 * A name for a new consumer of a group: `delayline:<visibility timeout in ms>:<uuid>`.
 *
 * It tells everybody after how long a silence this consumer is dead, so a process with a short timeout takes
 * nothing from one with a long one.
 *
 * @param visibilityTimeout milliseconds, rounded up.
 */
export function newConsumerName(visibilityTimeout: number): string {
  return `delayline:${Math.ceil(visibilityTimeout)}:${randomUUID()}`;
}

/** The visibility timeout in milliseconds that a name tells; undefined if it is none of ours. */
export function visibilityTimeoutOf(name: string): number | undefined {
  const timeout = NAME.exec(name)?.[1];
  return timeout === undefined ? undefined : Number(timeout);
}

// A timeout of 0 would make its consumer dead at once. 16 digits are enough for the longest duration.
const NAME = /^delayline:([1-9]\d{0,15}):[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/;
