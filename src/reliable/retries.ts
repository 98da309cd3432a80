import type { DelayedBytes } from "../delayed/delayed-messages.ts";
import type { Due } from "../delayed/offering/offering.ts";
import {
  clearRetries,
  getRetries,
  nextDue,
  removeRetries,
  rescheduleRetries,
  sizeWithRetries,
} from "../lua/reliable/retries.ts";
import type { Call } from "../queue/call.ts";
import { parseMessageId, type MessageId } from "../queue/message/message.ts";
import type { Queue } from "../queue/queue.ts";
import { failuresIn, unpackTrailer } from "../queue/message/trailer.ts";

/**
 * The retrying messages of a reliable queue, as bytes. They keep their ids, and users count and find them like delayed
 * messages.
 *
 * A message that several groups failed to handle waits once for each of them, but is one message here. It is found by
 * id only: its business key is free since it was delivered.
 *
 * Arguments have been checked. Every method rejects with `ClosedError` once the queue is closed, and with
 * `RedisError` if Redis refuses a command or its reply is lost.
 */
export class Retries {
  readonly #queue: Queue;

  constructor(queue: Queue) {
    this.#queue = queue;
  }

  /** Removes a message, for every group; returns whether it was retrying. */
  async cancel(id: MessageId, call?: Call): Promise<boolean> {
    return (await this.cancelMany([id], call)).includes(true);
  }

  /** Removes messages, a hundred per script; returns for each whether it was retrying. */
  async cancelMany(ids: readonly MessageId[], call?: Call): Promise<boolean[]> {
    const flags: boolean[] = [];
    for (let i = 0; i < ids.length; i += STEP) {
      const rows = ids.slice(i, i + STEP).map((id) => ({ wanted: parseMessageId(id) }));
      const some = await this.#queue.change("cancel in", removeRetries, {}, { ...call, rows });
      flags.push(...some);
      for (const isRemoved of some) if (isRemoved) this.#queue.counters.cancelled++;
    }
    return flags;
  }

  /** Returns a message with its deadline: when it is due next, for the first of its groups. */
  async get(id: MessageId, call?: Call): Promise<DelayedBytes | undefined> {
    const args = { wanted: parseMessageId(id) };
    const found = await this.#queue.read("look into", getRetries, args, call);
    const [first] = found.toSorted((a, b) => a.due - b.due);
    if (first === undefined) return undefined;
    const { due: deadline, payload, trailer } = first;
    const { key, headers } = unpackTrailer(trailer);
    return { id, deadline, payload, key, headers, failures: failuresIn(trailer) };
  }

  /**
   * Makes a message due at another time, or now, for every group that it waits for. Returns when it is due, or
   * undefined if it is not retrying. Its id stays.
   */
  async reschedule(
    id: MessageId,
    due: Due | "now",
    call?: Call,
  ): Promise<Pick<DelayedBytes, "id" | "deadline"> | undefined> {
    const args = {
      channel: this.#queue.keys.channel,
      wanted: parseMessageId(id),
      delay: "",
      deadline: "",
      ...(due !== "now" && due),
    };
    const deadline = await this.#queue.change("reschedule in", rescheduleRetries, args, call);
    return deadline === undefined ? undefined : { id, deadline };
  }

  /** Removes all retries; returns how many. A message counts once for each group. */
  async clear(call?: Call): Promise<number> {
    const dropped = await this.#queue.change("clear", clearRetries, {}, call);
    this.#queue.counters.cancelled += dropped;
    return dropped;
  }

  /** Returns the number of delayed messages and retries. A message counts once for each group. O(1). */
  size(call?: Call): Promise<number> {
    return this.#queue.read("measure", sizeWithRetries, {}, call);
  }

  /** Returns when the first of all delayed messages and retries is due, or undefined without any. */
  nextDeadline(call?: Call): Promise<number | undefined> {
    return this.#queue.read("look at", nextDue, {}, call);
  }
}

/** Messages per script: a few hundred microseconds of Redis's time. */
const STEP = 100;
