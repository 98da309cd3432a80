import { RedisError } from "../errors.ts";
import { refusalOf } from "../failure.ts";
import { exchange, exchangeIntoPartition, type Exchange } from "../lua/exchanges/exchange.ts";
import type { Call } from "../queue/call.ts";
import { whichOf } from "../queue/message/message.ts";
import type { Queue } from "../queue/queue.ts";
import { TurnBatch } from "../queue/turn-batch.ts";
import {
  checkWithin,
  landed,
  putArgs,
  putKeys,
  putRow,
  type Ground,
  type Landing,
} from "../queue/landing.ts";
import type { OfferResult } from "../queue/offering.ts";

/** The outcome of a cancellation with an offer. */
export interface Exchanged {
  /** Whether the message was delayed or retrying: it is cancelled, and the new message is offered. */
  readonly cancelled: boolean;
  /** The result of the offer; undefined if there was nothing to cancel, and so nothing was offered. */
  readonly offered: OfferResult | undefined;
}

/** A message to cancel, and the one to offer in its place. A script takes one ground and one fact. */
interface Wanted {
  readonly idOrKey: string;
  readonly landing: Landing;
  readonly ground: Ground;
  readonly knownFact: string | undefined;
}

/** Cancellations with an offer on their way to Redis. Those of one turn of the event loop share scripts. */
export class Exchanges {
  readonly #queue: Queue;
  readonly #batch = new TurnBatch<Wanted, Exchange>({
    send: (batch) => this.#send(batch.seal()),
    kindOf: ({ ground, knownFact = "" }) =>
      `${ground.queue.name} ${ground.knownFact ?? ""} ${knownFact}`,
    most: BATCH,
    sizeOf: ({ idOrKey, landing }) => idOrKey.length + landing.payload.length,
    giveUp: ({ cause }) => cause,
  });

  constructor(queue: Queue) {
    this.#queue = queue;
  }

  /**
   * Cancels a message by its id or business key, and offers another one in its place: both, or neither.
   *
   * @throws {TypeError} if one script cannot do both.
   */
  async add(idOrKey: string, landing: Landing, ground: Ground, call?: Call): Promise<Exchanged> {
    checkWithin(this.#queue, ground);
    const wanted = { idOrKey, landing, ground, knownFact: call?.knownFact };
    const { isCancelled, put, refusal } = await this.#batch.add(wanted, call);
    if (refusal !== undefined) throw new RedisError(this.#doing, refusalOf(refusal));
    if (isCancelled) this.#queue.counters.cancelled++;
    const [offered] = put === undefined ? [] : landed(ground, [landing], put.results);
    return { cancelled: isCancelled, offered };
  }

  /** Resolves once every one made so far is done. */
  done(): Promise<void> {
    return this.#batch.done();
  }

  async #send(wanted: readonly Wanted[]): Promise<readonly Exchange[]> {
    const [first] = wanted;
    if (first === undefined) return [];
    const { ground, knownFact } = first;
    const rows = wanted.map(({ idOrKey, landing }) => ({
      ...whichOf(idOrKey),
      ...putRow(landing),
    }));
    const script = ground.knownFact === undefined ? exchange : exchangeIntoPartition;
    const more = { rows, knownFact, keys: putKeys(ground) };
    return await this.#queue.change("cancel and offer in", script, putArgs(ground), more);
  }

  get #doing(): string {
    return `cannot cancel and offer in queue "${this.#queue.name}"`;
  }
}

/** Exchanges per script: a few hundred microseconds of Redis's time. */
const BATCH = 25;
