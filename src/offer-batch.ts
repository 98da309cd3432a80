import type { Connections } from "./connections.ts";
import { OfferError } from "./errors.ts";
import type { QueueKeys } from "./keys.ts";
import { offer, offerExact } from "./lua/offer.ts";
import { offerKeyed, offerKeyedExact, type Outcome } from "./lua/offer-keyed.ts";
import { run, type RedisClient } from "./lua/script.ts";
import { createId, formatMessageId, packMember, type MessageId } from "./message.ts";
import { ServerClock } from "./server-clock.ts";
import { TurnBatch } from "./turn-batch.ts";

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
 * Offers on their way to Redis. Those of one turn of the event loop travel together, and all arrive in
 * the order in which they were made.
 */
export class OfferBatch {
  readonly #queue: string;
  readonly #keys: QueueKeys;
  readonly #isExact: boolean;
  readonly #connections: Connections;
  readonly #clock: ServerClock;
  readonly #batch = new TurnBatch<Offering, OfferResult>({
    send: (offerings) => this.#send(offerings),
    // Offers with and without a key are different scripts.
    kindOf: ({ key }) => (key === undefined ? "plain" : "keyed"),
    sizeOf: ({ payload }) => payload.length,
  });
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
    return this.#batch.add(offering);
  }

  /** Resolves when every offer made so far is settled. */
  settled(): Promise<void> {
    return this.#batch.settled();
  }

  async #send(offerings: readonly Offering[]): Promise<OfferResult[]> {
    const { commands } = this.#connections;
    const wasSent = this.#connections.watchSending();
    try {
      if (this.#gate !== undefined) await this.#gate;
      const asking = this.#clock.ready(() => commands.time());
      if (asking !== undefined) await asking;
      // The ids are made before the first sending: ioredis sends a script again whose answer was
      // lost with the connection, and ZADD NX then finds the same members.
      const ids = offerings.map(() => createId(this.#clock.nextStamp()));
      const isPlain = offerings[0]?.key === undefined;
      return await (isPlain
        ? this.#sendPlain(commands, offerings, ids)
        : this.#sendKeyed(commands, offerings, ids));
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
  readonly #hold = (): void => {
    this.#gate ??= this.#batch.sent().finally(() => (this.#gate = undefined));
  };

  async #sendPlain(
    commands: RedisClient,
    offerings: readonly Offering[],
    ids: readonly Buffer[],
  ): Promise<OfferResult[]> {
    const words: (Buffer | string)[] = [];
    offerings.forEach(({ payload, due }, i) => {
      words.push(packMember(ids[i] as Buffer, payload), dueText(due));
    });
    const script = this.#isExact ? offerExact : offer;
    const { channel } = this.#keys;
    const sentAt = ServerClock.local();
    const reply = await run(commands, script, this.#keys, { channel }, words, this.#hold);
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
    const words: (Buffer | string)[] = [];
    offerings.forEach(({ payload, due, key = "", rule = "" }, i) => {
      words.push(packMember(ids[i] as Buffer, payload, key), dueText(due), key, rule);
    });
    const script = this.#isExact ? offerKeyedExact : offerKeyed;
    const { channel } = this.#keys;
    const sentAt = ServerClock.local();
    const reply = await run(commands, script, this.#keys, { channel }, words, this.#hold);
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
