import type { Connections } from "./connections.ts";
import { OfferError } from "./errors.ts";
import type { QueueKeys } from "./keys.ts";
import { offer, offerExact } from "./lua/offer.ts";
import { offerKeyed, offerKeyedExact, type Outcome } from "./lua/offer-keyed.ts";
import { run, type RedisClient } from "./lua/script.ts";
import { createId, formatMessageId, packMember, type MessageId } from "./message.ts";
import { ServerClock } from "./server-clock.ts";

/** What became of an offer. */
export interface OfferResult {
  /** Names the message from now on. */
  readonly id: MessageId;
  /** When it is due, in epoch milliseconds on the Redis server's clock. */
  readonly deadline: number;
  /**
   * What happened, which for an offer without a key is always `"added"`. With a key that was pending:
   * `"rejected"`: the pending message stays, and `id` and `deadline` are its own; `"replaced"`: it
   * has gone, and this one is in its place; `"kept"`: likewise, but its deadline was kept.
   */
  readonly outcome: Outcome;
}

/** When a message is to be due: in `delay` milliseconds, or at `deadline` (epoch ms). */
export type Due = { readonly delay: number } | { readonly deadline: number };

/** An encoded message on its way to Redis. */
export interface Offering {
  readonly payload: Buffer;
  readonly due: Due;
  readonly key?: string | undefined;
  /** What to do if the key is pending, as the script takes it. */
  readonly rule?: string | undefined;
}

/**
 * Offers on their way to Redis.
 *
 * Those that are made in the same turn of the event loop travel together, in one script per hundred:
 * it costs them no time, and Redis and Node a fraction of the work. They arrive in the order in which
 * they were made.
 */
export class OfferBatch {
  readonly #queue: string;
  readonly #keys: QueueKeys;
  readonly #isExact: boolean;
  readonly #connections: Connections;
  readonly #clock: ServerClock;
  #waiting: Waiting[] = [];
  readonly #sending = new Set<Promise<unknown>>();
  /** While set: offers wait for it, so that they do not overtake others. */
  #gate: Promise<unknown> | undefined;

  constructor(
    queue: string,
    keys: QueueKeys,
    isExact: boolean,
    shared: { readonly connections: Connections; readonly clock: ServerClock },
  ) {
    this.#queue = queue;
    this.#keys = keys;
    this.#isExact = isExact;
    this.#connections = shared.connections;
    this.#clock = shared.clock;
  }

  /** Adds an offer; answers when Redis has it. */
  add(offering: Offering): Promise<OfferResult> {
    return new Promise((resolve, reject) => {
      if (this.#waiting.length === 0) process.nextTick(() => this.#flush());
      this.#waiting.push({ offering, resolve, reject });
    });
  }

  /** Resolves when every offer made so far is settled. */
  async settled(): Promise<void> {
    if (this.#waiting.length > 0) this.#flush();
    while (this.#sending.size > 0) await Promise.allSettled(this.#sending);
  }

  #flush(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const batch of inBatches(waiting)) {
      const sending = this.#send(batch.map(({ offering }) => offering)).then(
        (results) => batch.forEach(({ resolve }, i) => resolve(results[i] as OfferResult)),
        (error: unknown) => batch.forEach(({ reject }) => reject(error)),
      );
      this.#sending.add(sending);
      void sending.finally(() => this.#sending.delete(sending));
    }
  }

  async #send(offerings: readonly Offering[]): Promise<OfferResult[]> {
    const { commands } = this.#connections;
    const wasSent = this.#connections.watchSending();
    try {
      if (this.#gate !== undefined) await this.#gate;
      await this.#clock.ready(() => commands.time());
      // The ids are made before the first sending: ioredis sends a script again whose answer was
      // lost with the connection, and ZADD NX then finds the same members.
      const ids = offerings.map(() => createId(this.#clock.nextStamp()));
      return offerings[0]?.key === undefined
        ? await this.#sendPlain(commands, offerings, ids)
        : await this.#sendKeyed(commands, offerings, ids);
    } catch (error) {
      // Where the caller's commandTimeout is over, ioredis may send the command all the same.
      const isTimeout = error instanceof Error && error.message === "Command timed out";
      const mayBeStored = isTimeout || wasSent();
      throw new OfferError(`cannot offer to queue "${this.#queue}"`, error, mayBeStored);
    }
  }

  /**
   * Redis does not know the script, and it is sent again as a text. So are all that are under way by
   * now; what comes next has to wait for them.
   */
  #hold(): void {
    this.#gate ??= Promise.allSettled(this.#sending).finally(() => (this.#gate = undefined));
  }

  async #sendPlain(
    commands: RedisClient,
    offerings: readonly Offering[],
    ids: readonly Buffer[],
  ): Promise<OfferResult[]> {
    const words = offerings.flatMap(({ payload, due }, i) => [
      packMember(ids[i] as Buffer, payload),
      dueText(due),
    ]);
    const script = this.#isExact ? offerExact : offer;
    const { channel } = this.#keys;
    const sentAt = ServerClock.local();
    const hold = () => this.#hold();
    const reply = await run(commands, script, this.#keys, { channel }, words, hold);
    this.#clock.observe(reply.serverTime, sentAt);
    return reply.deadlines.map((deadline, i) => ({
      id: formatMessageId(deadline, ids[i] as Buffer),
      deadline,
      outcome: "added",
    }));
  }

  async #sendKeyed(
    commands: RedisClient,
    offerings: readonly Offering[],
    ids: readonly Buffer[],
  ): Promise<OfferResult[]> {
    const words = offerings.flatMap(({ payload, due, key = "", rule = "" }, i) => [
      packMember(ids[i] as Buffer, payload, key),
      dueText(due),
      key,
      rule,
    ]);
    const script = this.#isExact ? offerKeyedExact : offerKeyed;
    const { channel } = this.#keys;
    const sentAt = ServerClock.local();
    const hold = () => this.#hold();
    const reply = await run(commands, script, this.#keys, { channel }, words, hold);
    this.#clock.observe(reply.serverTime, sentAt);
    return reply.answers.map(({ deadline, outcome, pendingId }, i) => ({
      id: formatMessageId(deadline, pendingId ?? (ids[i] as Buffer)),
      deadline,
      outcome,
    }));
  }
}

function dueText(due: Due): string {
  return "delay" in due ? `+${due.delay}` : `@${due.deadline}`;
}

interface Waiting {
  readonly offering: Offering;
  readonly resolve: (result: OfferResult) => void;
  readonly reject: (error: unknown) => void;
}

/** Cuts offers into pieces that are not too much for one script. */
function* inBatches<Item extends { offering: Offering }>(
  items: readonly Item[],
): Generator<Item[]> {
  let batch: Item[] = [];
  let bytes = 0;
  for (const item of items) {
    const size = item.offering.payload.length;
    const isFull = batch.length === BATCH || bytes + size > BATCH_BYTES;
    // Offers with and without a key are different scripts.
    const isKeyed = item.offering.key !== undefined;
    if (batch[0] && (isFull || isKeyed !== (batch[0].offering.key !== undefined))) {
      yield batch;
      batch = [];
      bytes = 0;
    }
    batch.push(item);
    bytes += size;
  }
  if (batch.length > 0) yield batch;
}

/** Offers per script: some 300 microseconds of Redis's time. */
const BATCH = 100;
const BATCH_BYTES = 1_048_576;
