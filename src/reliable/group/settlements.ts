import type { Entry } from "../../lua/fragments/entry.ts";
import {
  ack,
  again,
  bury,
  extend,
  handOut,
  giveBackEntries,
  retryLater,
} from "../../lua/reliable/deliveries.ts";
import type { Counters } from "../../observe/counters.ts";
import type { Queue } from "../../queue/queue.ts";
import { TurnBatch } from "../../queue/turn-batch.ts";
import type { Membership } from "./consumer-name.ts";
import type { Held } from "./held.ts";
import type { HeldDeliveries } from "./held-deliveries.ts";

/**
 * Sends the settlements of one consumer to Redis. Those of one kind made in one turn of the event loop share a script.
 *
 * Each method resolves to true if the entry was in flight for this consumer and the settlement was carried out, and
 * to false if it was not in flight and nothing was done. If Redis refuses or the reply is lost, it rejects, and the
 * delivery stays held.
 */
export class Settlements {
  readonly #queue: Queue;
  readonly #member: Membership;
  readonly #held: HeldDeliveries;

  readonly #acks = this.#batch<Settlement>((rows) =>
    this.#queue.change("acknowledge in", ack, this.#args, { rows: rows.map(rowOf) }),
  );
  readonly #retries = this.#batch<Settlement & { delay: number; failure: string | undefined }>(
    async (requests) => {
      const rows = requests.map(({ delay, failure, ...settlement }) => {
        return { ...rowOf(settlement), delay, ...failureOf(failure) };
      });
      const args = { ...this.#args, channel: this.#queue.keys.channel };
      return (await this.#queue.change("retry in", retryLater, args, { rows })).settled;
    },
    MAX_WRITTEN,
  );
  readonly #burials = this.#batch<Settlement & { reason: string }>((requests) => {
    const rows = requests.map(({ reason, ...settlement }) => ({ ...rowOf(settlement), reason }));
    return this.#queue.change("reject in", bury, this.#args, { rows });
  }, MAX_WRITTEN);
  readonly #giveBacks = this.#batch<Settlement & { failure: string | undefined }>((requests) => {
    const rows = requests.map(({ failure, ...settlement }) => {
      return { ...rowOf(settlement), ...failureOf(failure) };
    });
    const args = { ...this.#args, channel: this.#queue.keys.channel };
    return this.#queue.change("give back to", giveBackEntries, args, { rows });
  }, MAX_WRITTEN);
  readonly #extensions = this.#batch<Settlement>((requests) => {
    const rows = requests.map(({ entry }) => ({ entry }));
    return this.#queue.change("extend a lease in", extend, this.#args, { rows });
  });

  constructor(queue: Queue, member: Membership, held: HeldDeliveries) {
    this.#queue = queue;
    this.#member = member;
    this.#held = held;
  }

  /** Acknowledges a delivery. */
  ack(held: Held, signal?: AbortSignal): Promise<boolean> {
    const { entryId: entry, group } = held.entry;
    const settlement = { entry, isOwn: group !== undefined, bytes: 0, counter: ACKNOWLEDGED };
    return held.settle((ending) => this.#acks.add(settlement, ending), true, signal);
  }

  /** Makes a message retry in `delay` milliseconds. Without a `failure` the delivery does not count as an attempt. */
  retry(
    held: Held,
    delay: number,
    failure: string | undefined,
    signal?: AbortSignal,
  ): Promise<boolean> {
    const settlement = { ...settlementOf(held), delay, failure, counter: counterOf(failure) };
    const isAsked = failure !== undefined;
    return held.settle((ending) => this.#retries.add(settlement, ending), isAsked, signal);
  }

  /**
   * Counts a failure and leaves the message in flight for this consumer, as a new entry that is held back for `delay`
   * milliseconds; see the script `again`. Calls `keep` with that entry.
   */
  again(
    held: Held,
    delay: number,
    failure: string,
    keep: (entry: Entry) => void,
    signal?: AbortSignal,
  ): Promise<boolean> {
    const reason = cut(failure, MAX_FAILURE);
    const args = { ...this.#args, ...rowOf(settlementOf(held)), delay, reason };
    const send = async (ending?: AbortSignal) => {
      const options = { signal: ending };
      const found = await this.#queue.change("keep a failed message of", again, args, options);
      if (found === undefined) return false;
      this.#queue.counters.retried++;
      keep(found);
      return true;
    };
    return held.settle(send, true, signal);
  }

  /**
   * Notes that a delivery is handed out that no read of this process returned; see the script `handOut`. Returns 0 if it
   * may be handed out now, or the milliseconds until then, and undefined if it is lost.
   */
  async handOut(held: Held, signal?: AbortSignal): Promise<number | undefined> {
    const { entryId: entry, heldBackUntil = 0 } = held.entry;
    const args = { ...this.#member, entry, heldBackUntil };
    const left = await this.#queue.change("hand out a message of", handOut, args, { signal });
    if (left === undefined) held.lose();
    return left;
  }

  /** Makes a message a dead letter. */
  bury(held: Held, reason: string, signal?: AbortSignal): Promise<boolean> {
    const burial = burialOf(held, reason);
    return held.settle((ending) => this.#burials.add(burial, ending), true, signal);
  }

  /** As {@link bury}, for a delivery that is taken away from the user's code. */
  buryUnasked(held: Held, reason: string): Promise<boolean> {
    return held.settle(() => this.#burials.add(burialOf(held, reason)));
  }

  /**
   * Makes a message ready again at once, or once it is no longer held back. Without a `failure` the delivery does not
   * count as an attempt.
   */
  giveBack(held: Held, failure?: string): Promise<boolean> {
    const settlement = { ...settlementOf(held), failure, counter: counterOf(failure) };
    return held.settle(() => this.#giveBacks.add(settlement));
  }

  /**
   * Gives back an entry that is in flight for this consumer but not held; see `LeaseKeeper` and `Intake`. If it has a
   * foreign format, it is set aside.
   */
  giveBackStranger(entry: string): Promise<boolean> {
    return this.#giveBacks.add({ entry, isOwn: false, bytes: UNKNOWN_BYTES, failure: undefined });
  }

  /** Acknowledges an entry that this group must not handle. */
  skip(entry: string): Promise<boolean> {
    return this.#acks.add({ entry, isOwn: false, bytes: 0 });
  }

  /** Renews the lease of a delivery. */
  extend(held: Held, signal?: AbortSignal): Promise<boolean> {
    return held.extend(() => this.#extensions.add({ ...settlementOf(held), bytes: 0 }, signal));
  }

  /** Resolves when every settlement made so far has its reply or its error. */
  async settled(): Promise<void> {
    const all = [this.#acks, this.#retries, this.#burials, this.#giveBacks, this.#extensions];
    await Promise.all(all.map((batch) => batch.settled()));
  }

  get #args(): Membership & { readonly heldCount: number } {
    return { ...this.#member, heldCount: this.#held.size };
  }

  #batch<Request extends Settlement>(
    send: (requests: readonly Request[]) => Promise<readonly boolean[]>,
    most?: number,
  ): TurnBatch<Request, boolean> {
    return new TurnBatch({
      send: async (batch) => {
        const requests = batch.claim();
        const flags = await send(requests);
        const { counters } = this.#queue;
        for (let i = 0; i < requests.length; i++) {
          const counter = requests[i]?.counter;
          if (counter !== undefined && flags[i] === true) counters[counter]++;
        }
        return flags;
      },
      ...(most !== undefined && { most }),
      sizeOf: ({ bytes }) => bytes,
      giveUp: ({ cause }) => cause,
    });
  }
}

interface Settlement {
  /** The entry's id in the stream. */
  readonly entry: string;
  /** Whether the entry is for this group only. */
  readonly isOwn: boolean;
  /** How many bytes the script has to read and write again. */
  readonly bytes: number;
  /** The counter to increment when it was carried out. */
  readonly counter?: keyof Pick<Counters, "acknowledged" | "retried" | "dead"> | undefined;
}

function counterOf(failure: string | undefined): "retried" | undefined {
  return failure === undefined ? undefined : "retried";
}

/** The columns that say whether the delivery failed, and why. */
function failureOf(failure: string | undefined): { counted: number; reason: string } {
  if (failure === undefined) return { counted: 0, reason: "" };
  return { counted: 1, reason: cut(failure, MAX_FAILURE) };
}

/** The first `most` UTF-16 units of a text, without half a surrogate pair. */
function cut(reason: string, most: number): string {
  return reason
    .slice(0, most)
    .replace(/[\uD800-\uDBFF]$/, "")
    .toWellFormed();
}

function settlementOf({ entry }: Held): Settlement {
  const bytes = entry.payload.length + entry.trailer.length;
  return { entry: entry.entryId, isOwn: entry.group !== undefined, bytes };
}

function burialOf(held: Held, reason: string): Settlement & { reason: string } {
  return { ...settlementOf(held), reason: cut(reason, MAX_REASON), counter: "dead" };
}

function rowOf({ entry, isOwn }: Settlement): { entry: string; own: number } {
  return { entry, own: isOwn ? 1 : 0 };
}

/** Settlements per script, for scripts that write messages again: about 500 us of Redis's time. */
const MAX_WRITTEN = 25;

/** The most characters of a dead letter's reason. */
const MAX_REASON = 1000;

const ACKNOWLEDGED: Settlement["counter"] = "acknowledged";

/** The most characters of a failure's reason that are sent; the script keeps 200 bytes of them. */
const MAX_FAILURE = 200;

/** A guess at the bytes of a stranger, which nobody here has read. */
const UNKNOWN_BYTES = 65_536;
