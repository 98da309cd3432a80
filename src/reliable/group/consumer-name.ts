import { randomUUID } from "node:crypto";

/** A consumer and its group. */
export interface Membership {
  readonly group: string;
  readonly consumer: string;
}

/**
 * Returns a name for a new consumer of a group: `delayline:<visibility timeout in ms>:<uuid>`.
 *
 * The name states after how long a silence this consumer is dead. So a process with a short timeout
 * takes nothing from one with a long timeout.
 *
 * @param visibilityTimeout milliseconds, rounded up.
 */
export function newConsumerName(visibilityTimeout: number): string {
  return `delayline:${Math.ceil(visibilityTimeout)}:${randomUUID()}`;
}

/** Returns the visibility timeout (milliseconds) in a consumer's name; undefined for a foreign name. */
export function visibilityTimeoutOf(name: string): number | undefined {
  const timeout = NAME.exec(name)?.[1];
  return timeout === undefined ? undefined : Number(timeout);
}

// No 0: its consumer would be dead at once. 16 digits hold the longest duration.
const NAME = /^delayline:([1-9]\d{0,15}):[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/;
