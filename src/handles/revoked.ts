import { STAGES } from "../lua/reliable/revoke.ts";
import { callOf, checkFind, type Call, type FindOptions } from "../queue/call.ts";
import { checkDuration, checkOptions, checkReason } from "../queue/checks.ts";
import { messageIdAt, type MessageId } from "../queue/message/message.ts";
import type { RunningEntry } from "../lua/reliable/in-flight-page.ts";
import { processOf } from "../reliable/group/consumer-name.ts";
import type { FoundMessage } from "../reliable/revocations.ts";
import { LAST_DATE } from "../time/last-date.ts";
import { Pause } from "../time/pause.ts";
import { networkTime } from "../time/runtime.ts";
import { sleepForNetwork } from "../time/sleep.ts";

/**
 * How far a message of a reliable queue has come:
 *
 * - `delayed`: it waits for its deadline. `waiting`: it is due, and waits for its turn in a queue with a flow.
 * - `ready`: no consumer has it.
 * - `running`: it was handed to a consumer.
 * - `retrying`: an attempt failed, and it waits for the next one, also for its turn or held back in strict order.
 * - `dead`: it is a dead letter.
 * - `handled`: it is nowhere, and was handled. Redis remembers this by the key of a message that was offered with `once`, for as
 *   long as `once` says, and at least a minute.
 * - `gone`: it is nowhere. Every group has settled it, or it was cancelled, revoked, dropped, or never offered.
 */
export type Stage = (typeof STAGES)[number];

/** Where a message was. */
export interface Revoked {
  /**
   * The furthest stage among its groups, in this order: running, retrying, ready, waiting, delayed, dead, handled, gone. `revoke`
   * says gone instead of handled.
   */
  readonly stage: Stage;
  /** The id of the message in that stage; undefined if it is gone. */
  readonly id: MessageId | undefined;
  /** Every place where it was. */
  readonly places: readonly {
    readonly id: MessageId;
    readonly stage: Exclude<Stage, "handled" | "gone">;
    /** The group that it was there for; undefined for all groups. */
    readonly group: string | undefined;
    /** How many deliveries were made, including the one that runs. */
    readonly attempts: number;
  }[];
  /** Whether all its handlers have ended, as far as is known. False only after `running`. */
  readonly hasEnded: boolean;
  /** When it was handled, if Redis remembers that (see the stage `handled`). */
  readonly handledAt?: Date;
}

/** Options of `revoke`. */
export interface RevokeOptions extends FindOptions {
  /** Why, in 1 to 500 characters: the delivery's signal carries it. */
  readonly reason?: string;
  /**
   * How long to wait for the handlers to end, in milliseconds, if any may run. A handler has ended if it has returned, has settled
   * what it took by hand, or its process is dead. Costs a short script each time it looks, up to ten a second. Defaults to 0.
   */
  readonly wait?: number;
}

/** A message that a consumer holds. */
export interface RunningMessage {
  readonly id: MessageId;
  /** The business key; undefined if the message was offered without one. */
  readonly key: string | undefined;
  readonly group: string;
  /** The consumer's name in Redis. */
  readonly consumer: string;
  /** The host of its process; undefined for a foreign consumer. */
  readonly host: string | undefined;
  /** The id of its process. */
  readonly pid: number | undefined;
  /** When the consumer got the message, on the Redis server's clock. */
  readonly since: Date;
  /** 1 on the first delivery. */
  readonly attempt: number;
}

/**
 * Checks the options of `revoke`.
 *
 * @throws {TypeError | RangeError} if an option is unknown or not legal.
 */
export function checkRevoke(options: RevokeOptions = {}): {
  readonly reason: string;
  readonly wait: number;
  readonly call: Call | undefined;
} {
  checkOptions("revoke option", options, ["reason", "wait", "signal", "partitionKey"]);
  const { reason, wait = 0, ...find } = options;
  if (reason !== undefined) checkReason(reason);
  checkDuration("wait", wait);
  return { reason: reason ?? "", wait, call: checkFind(find) };
}

/** Says where a message was. */
export function revokedOf({ places: found, handledAt }: FoundMessage): Omit<Revoked, "hasEnded"> {
  const places = found.map(({ address, stage, group, attempts }) => {
    return { id: messageIdAt(address), stage, group, attempts };
  });
  const [furthest] = places.toSorted((a, b) => STAGES.indexOf(a.stage) - STAGES.indexOf(b.stage));
  return {
    stage: furthest?.stage ?? "gone",
    id: furthest?.id,
    places,
    ...(handledAt !== undefined && { handledAt: new Date(Math.min(handledAt, LAST_DATE)) }),
  };
}

/** Whether the handlers of a message have ended, `wait` milliseconds from now at the latest. */
export async function haveEnded(
  found: FoundMessage,
  wait: number,
  call: Call | undefined,
): Promise<boolean> {
  if (!found.places.some(({ stage }) => stage === "running")) return true;
  const own = callOf(call);
  const endsAt = networkTime.now() + wait;
  const pause = new Pause(2, 100);
  for (;;) {
    const left = endsAt - networkTime.now();
    if (left <= 0) return false;
    await sleepForNetwork(Math.min(pause.take(), left), call?.signal);
    call?.signal?.throwIfAborted();
    if (!(await found.isRunning(own))) return true;
  }
}

/** Makes an entry of a script readable. */
export function runningMessage(one: RunningEntry & { readonly group: string }): RunningMessage {
  const { address, key, group, consumer, since, attempt } = one;
  const { host, pid } = processOf(consumer) ?? {};
  const at = new Date(Math.min(since, LAST_DATE));
  return { id: messageIdAt(address), key, group, consumer, host, pid, since: at, attempt };
}
