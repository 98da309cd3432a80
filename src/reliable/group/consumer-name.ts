import { randomUUID } from "node:crypto";
import { parseProcessName, processName, type ProcessName } from "../../queue/process-name.ts";

/** A consumer and its group. */
export interface Membership {
  readonly group: string;
  readonly consumer: string;
}

/**
 * Returns a name for a new consumer of a group: `delayline:<lease timeout in ms>:<most attempts>:<host>/<pid>:
 * <uuid>`, without the space.
 *
 * The name shows every other process how long this consumer may be silent before it counts as dead. So a process with a
 * short timeout takes nothing from one with a long timeout. And it shows which delivery of a message is the last one:
 * a process that empties a removed partition does not know the group's settings. Scripts read the name, too; see
 * `lua/fragments/stream-info.ts`. And it shows people which process has a message in flight.
 *
 * @param leaseTimeout milliseconds, rounded up.
 * @param maxAttempts a whole number above 0.
 */
export function newConsumerName(leaseTimeout: number, maxAttempts: number): string {
  return `delayline:${Math.ceil(leaseTimeout)}:${maxAttempts}:${processName()}:${randomUUID()}`;
}

/** Returns the lease timeout (milliseconds) in a consumer's name; undefined for a foreign name. */
export function leaseTimeoutOf(name: string): number | undefined {
  const timeout = NAME.exec(name)?.[1];
  return timeout === undefined ? undefined : Number(timeout);
}

/** Returns the process in a consumer's name; undefined for a foreign name. */
export function processOf(name: string): ProcessName | undefined {
  return parseProcessName(NAME.exec(name)?.[2] ?? "");
}

// No 0: its consumer would be dead at once. 16 digits hold the longest duration. Older releases made names without the
// process, and before that without the second number.
const NAME =
  /^delayline:([1-9]\d{0,15}):(?:[1-9]\d{0,6}:(?:([\w.-]{1,63}\/\d{1,15}):)?)?[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/;
