import type { Entry } from "../../lua/fragments/stream/entry.ts";
import { ack } from "../../lua/reliable/ack.ts";
import { again } from "../../lua/reliable/again.ts";
import { bury } from "../../lua/reliable/bury.ts";
import { extend } from "../../lua/reliable/extend.ts";
import { giveBackEntries } from "../../lua/reliable/give-back.ts";
import { retryLater } from "../../lua/reliable/retries/retry-later.ts";
import type { Counters } from "../../observe/counters.ts";
import type { Queue } from "../../queue/queue.ts";
import { TurnBatch } from "../../queue/turn-batch.ts";
import type { Held } from "./held.ts";
import type { InHand } from "./in-hand.ts";

/** Whose deliveries are settled. */
export interface Membership {
  readonly group: string;
  readonly consumer: string;
}

/**
 * Settlements on their way to Redis. Those of one kind that are made in one turn of the event loop travel together.
 *
 * Each resolves to whether the delivery was still ours, and with it the settlement is carried out; false: it was
 * not, and nothing was done. If the reply was lost it rejects, and the delivery stays in hand.
 */
export class Settlements {
  readonly #queue: Queue;
  readonly #member: Membership;
  readonly #inHand: InHand;

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
    WRITTEN,
  );
  readonly #burials = this.#batch<Settlement & { reason: string }>((requests) => {
    const rows = requests.map(({ reason, ...settlement }) => ({ ...rowOf(settlement), reason }));
    return this.#queue.change("reject in", bury, this.#args, { rows });
  }, WRITTEN);
  readonly #giveBacks = this.#batch<Settlement & { failure: string | undefined }>((requests) => {
    const rows = requests.map(({ failure, ...settlement }) => {
      return { ...rowOf(settlement), ...failureOf(failure) };
    });
    return this.#queue.change("give back to", giveBackEntries, this.#args, { rows });
  }, WRITTEN);
  readonly #extensions = this.#batch<Settlement>((requests) => {
    const rows = requests.map(({ entry }) => ({ entry }));
    return this.#queue.change("extend a lease in", extend, this.#args, { rows });
  });

  constructor(queue: Queue, member: Membership, inHand: InHand) {
    this.#queue = queue;
    this.#member = member;
    this.#inHand = inHand;
  }

  /** Finishes a delivery. */
  ack(held: Held, signal?: AbortSignal): Promise<boolean> {
    const { entryId: entry, group } = held.entry;
    const settlement = { entry, isOwn: group !== undefined, bytes: 0, counter: ACKNOWLEDGED };
    return held.settle(() => this.#acks.add(settlement, signal));
  }

  /** Lets a message come back in `delay` milliseconds. Without a `failure` the delivery does not count. */
  retry(
    held: Held,
    delay: number,
    failure: string | undefined,
    signal?: AbortSignal,
  ): Promise<boolean> {
    const settlement = { ...of(held), delay, failure, counter: counterOf(failure) };
    return held.settle(() => this.#retries.add(settlement, signal));
  }

  /** See `again`; returns the entry that the message has now, undefined if the delivery was not ours any more. */
  async again(held: Held, failure: string, signal?: AbortSignal): Promise<Entry | undefined> {
    const args = { ...this.#args, ...rowOf(of(held)), reason: cut(failure, MAX_FAILURE) };
    let found: Entry | undefined;
    await held.settle(async () => {
      found = await this.#queue.change("keep in hand in", again, args, { signal });
      if (found !== undefined) this.#queue.counters.retried++;
      return found !== undefined;
    });
    return found;
  }

  /** Puts a message to the dead letters. */
  bury(held: Held, reason: string, signal?: AbortSignal): Promise<boolean> {
    const settlement = { ...of(held), reason: cut(reason, MAX_REASON), counter: "dead" } as const;
    return held.settle(() => this.#burials.add(settlement, signal));
  }

  /** Lets a message come back at once, to whoever takes next. Without a `failure` the delivery does not count. */
  giveBack(held: Held, failure?: string): Promise<boolean> {
    const settlement = { ...of(held), failure, counter: counterOf(failure) };
    return held.settle(() => this.#giveBacks.add(settlement));
  }

  /** Gives back an entry that is in flight for this consumer though nobody here has it in hand. */
  giveBackStranger(entry: string): Promise<boolean> {
    return this.#giveBacks.add({ entry, isOwn: false, bytes: UNKNOWN, failure: undefined });
  }

  /** Acknowledges an entry that is for another group. */
  skip(entry: string): Promise<boolean> {
    return this.#acks.add({ entry, isOwn: false, bytes: 0 });
  }

  /** Tells whether a delivery is still ours, and renews the lease. */
  extend(held: Held, signal?: AbortSignal): Promise<boolean> {
    return held.extend(() => this.#extensions.add({ ...of(held), bytes: 0 }, signal));
  }

  /** Resolves when every settlement made so far has its reply. */
  async settled(): Promise<void> {
    const all = [this.#acks, this.#retries, this.#burials, this.#giveBacks, this.#extensions];
    await Promise.all(all.map((batch) => batch.settled()));
  }

  get #args(): Membership & { readonly inHand: number } {
    return { ...this.#member, inHand: this.#inHand.size };
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
  /** Whether it is for this group only. */
  readonly isOwn: boolean;
  /** How many the script has to read and write again. */
  readonly bytes: number;
  /** What is counted if it is carried out. */
  readonly counter?: keyof Pick<Counters, "acknowledged" | "retried" | "dead"> | undefined;
}

/** A delivery that does not count as an attempt has not failed. */
function counterOf(failure: string | undefined): "retried" | undefined {
  return failure === undefined ? undefined : "retried";
}

/** The columns that say whether and why a delivery has failed. */
function failureOf(failure: string | undefined): { counted: number; reason: string } {
  if (failure === undefined) return { counted: 0, reason: "" };
  return { counted: 1, reason: cut(failure, MAX_FAILURE) };
}

/** At most so many characters, none of which is half of a pair. */
function cut(reason: string, most: number): string {
  return reason
    .slice(0, most)
    .replace(/[\uD800-\uDBFF]$/, "")
    .toWellFormed();
}

function of({ entry }: Held): Settlement {
  const bytes = entry.payload.length + entry.trailer.length;
  return { entry: entry.entryId, isOwn: entry.group !== undefined, bytes };
}

function rowOf({ entry, isOwn }: Settlement): { entry: string; own: number } {
  return { entry, own: isOwn ? 1 : 0 };
}

/** Settlements per script that write messages again: some 500 microseconds of Redis's time. */
const WRITTEN = 25;

/** Characters of a dead letter's reason that are kept. */
const MAX_REASON = 1000;

const ACKNOWLEDGED: Settlement["counter"] = "acknowledged";

/** Characters of a failure's reason that are sent; Redis keeps 200 bytes of it. */
const MAX_FAILURE = 200;

/** What a stranger may hold, in bytes: nobody here has read it. */
const UNKNOWN = 65_536;
