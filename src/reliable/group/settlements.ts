import {
  checkWithin,
  identify,
  landed,
  putArgs,
  putKeys,
  putRow,
  type Ground,
  type Landing,
  type NextStep,
} from "../../queue/landing.ts";
import type { OfferResult } from "../../queue/offering.ts";
import { ClosedError, RedisError } from "../../errors.ts";
import { refusalOf } from "../../failure.ts";
import {
  ackAndOffer,
  ackAndOfferIntoPartition,
  rowsAsArgs,
} from "../../lua/exchanges/ack-and-offer.ts";
import type { PutReply } from "../../lua/exchanges/putting.ts";
import type { Entry } from "../../lua/places/stream.ts";
import {
  ack,
  ackAndNote,
  ackOnce,
  again,
  bury,
  extend,
  handOut,
  giveBackEntries,
  retryLater,
  type AckAndNoteReply,
} from "../../lua/reliable/deliveries.ts";
import type { Counters } from "../../observe/counters.ts";
import type { Call } from "../../queue/call.ts";
import { isOnce, unpackTrailer } from "../../queue/message/trailer.ts";
import { processName } from "../../queue/process-name.ts";
import type { Queue } from "../../queue/queue.ts";
import { TurnBatch } from "../../queue/turn-batch.ts";
import type { Work } from "../../redis/troubles.ts";
import { Pause } from "../../time/pause.ts";
import type { Membership } from "./consumer-name.ts";
import { Finishes } from "./finishes.ts";
import type { Held, HeldDeliveries } from "./held.ts";
import { networkTime } from "../../time/runtime.ts";
import { Delay } from "../../time/delay.ts";

/** How a consumer keeps failed messages in flight, so that no message overtakes them; see `GroupTenure`. */
export interface Keeping {
  /** Called with the new entry of a message that was kept. */
  readonly onKept: (entry: Entry) => void;
  /** Called if Redis refused or the reply was lost: the message may be in flight as a new entry. */
  readonly onFailed: () => void;
}

/**
 * Sends the settlements of one consumer to Redis. Those of one kind made in one turn of the event loop share a script.
 *
 * Each settlement resolves to true if the entry was in flight for this consumer and the settlement was carried out, and
 * to false if it was not in flight and nothing was done. If Redis refuses or the reply is lost, it rejects, and the
 * delivery stays held.
 *
 * {@link persist}, {@link release} and {@link giveUp} are for deliveries that no user's call awaits: for what a handler's
 * outcome decides, what nobody took, and what closing gives back. They retry with a growing pause until Redis replies.
 * A settlement that was asked for goes before: a handler that has called `ack` has succeeded, even if the call rejected
 * and the handler failed with that error; see `Held`. Once the client begins to close, retries go on for `unreachableTimeout`
 * at most. An entry that could not be settled stays in flight, and is reclaimed when the lease ends.
 */
export class Settlements {
  readonly #queue: Queue;
  readonly #member: Membership;
  readonly #held: HeldDeliveries;
  readonly #isExclusive: boolean;
  readonly #keeping: Keeping | undefined;
  readonly #work: Work;
  readonly #keepFor: number;
  readonly #noting: Work;
  /** When {@link stop} was called (`networkTime.now()`). */
  #stoppedAt = Infinity;
  #isClosed = false;
  /** How many calls of {@link persist} are under way. */
  #persistingCount = 0;
  /** Called once the last one has ended. */
  #onNonePersisting = () => {};

  readonly #acks = this.#batch<Acknowledgement>((rows) => this.#acknowledge(rows));
  readonly #finishes = new Finishes({
    send: async (all) => {
      const flags = await this.#acknowledge(
        all.map((held) => ({ entry: held.entry.entryId, own: ownOf(held), held })),
      );
      for (const flag of flags) if (flag) this.#queue.counters.acknowledged++;
      return flags;
    },
    sendAgain: (held) => this.persist(held, () => this.ack(held)),
  });
  readonly #retries = this.#batch<Settlement & { delay: Delay; failure: string | undefined }>(
    async (requests) => {
      const rows = requests.map(({ delay, failure, ...settlement }) => {
        return { ...settlement, delay, ...failureOf(failure) };
      });
      const args = { ...this.#args, channel: this.#queue.keys.channel };
      return (await this.#queue.change("retry in", retryLater, args, { rows })).settled;
    },
    MAX_WRITTEN,
  );
  readonly #burials = this.#batch<Settlement & { reason: string }>((requests) => {
    return this.#queue.change("reject in", bury, this.#args, { rows: requests });
  }, MAX_WRITTEN);
  readonly #giveBacks = this.#batch<Settlement & { failure: string | undefined }>((requests) => {
    const rows = requests.map(({ failure, ...settlement }) => {
      return { ...settlement, ...failureOf(failure) };
    });
    const args = { ...this.#args, channel: this.#queue.keys.channel };
    return this.#queue.change("give back to", giveBackEntries, args, { rows });
  }, MAX_WRITTEN);
  readonly #steps = new TurnBatch<Following, PutReply["results"] | false>({
    send: (batch) => this.#ackAndOffer(batch.seal()),
    kindOf: ({ ground }) => `${ground.queue.name} ${ground.knownFact ?? ""}`,
    most: MAX_WRITTEN,
    sizeOf: ({ bytes }) => bytes,
    giveUp: ({ cause }) => cause,
  });
  readonly #extensions = this.#batch<Settlement>((requests) => {
    return this.#queue.change("extend a lease in", extend, this.#args, { rows: requests });
  });

  constructor(
    queue: Queue,
    member: Membership,
    held: HeldDeliveries,
    {
      isExclusive = false,
      keeping,
      keepHandled = 0,
    }: {
      /** Whether this is the only consumer of a partition. */
      readonly isExclusive?: boolean;
      readonly keeping?: Keeping | undefined;
      /** How long Redis remembers which messages were handled (ms). 0: not at all. */
      readonly keepHandled?: number;
    } = {},
  ) {
    this.#keepFor = Math.ceil(keepHandled);
    this.#noting = queue.server.troubles.work();
    this.#queue = queue;
    this.#member = member;
    this.#held = held;
    this.#isExclusive = isExclusive;
    this.#keeping = keeping;
    this.#work = queue.server.troubles.work();
  }

  /** Acknowledges a delivery. */
  ack(held: Held, call?: Call): Promise<boolean> {
    const settlement = { ...settlementOf(held), bytes: 0, counter: "acknowledged" as const, held };
    return held.settle((ending) => this.#acks.add(settlement, ending), true, call);
  }

  /**
   * Acknowledges a delivery, and offers the messages of the step: both, or neither. Returns what became of them; false if the
   * delivery was not in flight.
   *
   * @throws {TypeError} if one script cannot do both.
   */
  async ackAndOffer(
    held: Held,
    { landings, to }: NextStep,
    call?: Call,
  ): Promise<OfferResult[] | false> {
    let offered: OfferResult[] | false = false;
    const send = async (ending?: Call) => {
      const act = async (ground: Ground) => {
        checkWithin(this.#queue, ground);
        const { entry, own, bytes } = settlementOf(held);
        const size = landings.reduce((sum, { payload }) => sum + payload.length, bytes);
        const request = { entry, own, held, landings, ground, bytes: size };
        const results = await this.#steps.add(request, ending);
        return results && landed(ground, landings, results);
      };
      if (to === undefined) await identify(this.#queue, landings, ending);
      offered =
        to === undefined ? await act({ queue: this.#queue }) : await to.land(landings, act, ending);
      return offered !== false;
    };
    await held.settle(send, true, call);
    return offered;
  }

  /** Sends acknowledgements with what is offered in the same step, to one ground. Returns for each what became of that. */
  async #ackAndOffer(requests: readonly Following[]): Promise<(PutReply["results"] | false)[]> {
    const [first] = requests;
    if (first === undefined) return [];
    const { ground } = first;
    const forms = ground.knownFact === undefined ? ackAndOffer : ackAndOfferIntoPartition;
    const rows = requests.flatMap(({ entry, landings }) =>
      landings.map((one) => ({
        of: entry,
        rule: one.key === undefined ? "" : "ignore",
        ...putRow(one),
      })),
    );
    const more = { rows, keys: putKeys(ground) };
    const doing = "acknowledge and offer in";
    let settled: readonly boolean[];
    let put: PutReply | undefined;
    const isAnyOnce = isOnceIn(requests);
    if (this.#keepFor === 0 && !isAnyOnce) {
      const acks = requests.map(({ entry, own }) => ({ entry, own }));
      const args = { ...this.#args, ...rowsAsArgs(ack, acks), ...putArgs(ground) };
      ({ settled, put } = await this.#queue.change(doing, forms.ack, args, more));
    } else {
      const { args: noting, rows: notes } = this.#noteAll(requests);
      const [script, form] = isAnyOnce
        ? ([ackOnce, forms.ackOnce] as const)
        : ([ackAndNote, forms.ackAndNote] as const);
      const args = { ...noting, ...rowsAsArgs(script, notes), ...putArgs(ground) };
      const reply = await this.#queue.change(doing, form, args, more);
      settled = this.#settledOf(reply.settled);
      ({ put } = reply);
    }
    let next = 0;
    return requests.map(({ landings }, i) => {
      if (settled[i] !== true) return false;
      this.#queue.counters.acknowledged++;
      return put?.results.slice(next, (next += landings.length)) ?? [];
    });
  }

  /** Acknowledges. */
  async #acknowledge(requests: readonly AckRow[]): Promise<readonly boolean[]> {
    const doing = "acknowledge in";
    const isAnyOnce = isOnceIn(requests);
    if (this.#keepFor === 0 && !isAnyOnce) {
      return await this.#queue.change(doing, ack, this.#args, { rows: requests });
    }
    const { args, rows } = this.#noteAll(requests);
    const script = isAnyOnce ? ackOnce : ackAndNote;
    return this.#settledOf(await this.#queue.change(doing, script, args, { rows }));
  }

  #noteAll(requests: readonly AckRow[]) {
    const now = this.#queue.clock.now();
    const rows = requests.map(({ entry, own, held }) => ({ entry, own, ...noteOf(held, now) }));
    return { args: { ...this.#args, process: processName(), keepFor: this.#keepFor }, rows };
  }

  /** Reports a refusal to note what was handled: the messages are acknowledged all the same. */
  #settledOf({ settled, refusal }: AckAndNoteReply): readonly boolean[] {
    if (refusal === undefined) this.#noting.succeeded();
    else {
      const failed = `cannot note which messages of queue "${this.#queue.name}" were handled`;
      this.#noting.failed(new RedisError(failed, refusalOf(refusal)));
    }
    return settled;
  }

  /**
   * Acknowledges a delivery whose handler has returned; does nothing if the handler has settled it. Never rejects:
   * retries as {@link persist} does.
   */
  finish(held: Held): Promise<unknown> {
    if (!held.beginSettling()) {
      const settle = () => this.ack(held);
      return held.settleAsAsked(settle).catch(() => this.persist(held, settle));
    }
    return this.#finishes.add(held);
  }

  /**
   * Makes a message retry in `delay` milliseconds. Without a `failure` the delivery does not count as an attempt.
   *
   * A consumer with a {@link Keeping} leaves a message that failed in flight.
   */
  retry(held: Held, delay: number, failure?: string, call?: Call): Promise<boolean> {
    if (this.#keeping !== undefined && failure !== undefined) {
      return this.#again(held, delay, failure, this.#keeping, call);
    }
    const counter = counterOf(failure);
    const settlement = { ...settlementOf(held), delay: new Delay(delay), failure, counter };
    const isAsked = failure !== undefined;
    return held.settle((ending) => this.#retries.add(settlement, ending), isAsked, call);
  }

  /**
   * Counts a failure and leaves the message in flight for this consumer, as a new entry that is held back for `delay`
   * milliseconds; see the script `again`.
   */
  #again(
    held: Held,
    delay: number,
    failure: string,
    { onKept, onFailed }: Keeping,
    call?: Call,
  ): Promise<boolean> {
    const reason = cut(failure, MAX_FAILURE);
    const { entry, own } = settlementOf(held);
    const args = { ...this.#args, entry, own, delay: new Delay(delay), reason };
    const send = async (ending?: Call) => {
      const keeping = this.#queue.change("keep a failed message of", again, args, ending);
      keeping.catch(onFailed);
      const found = await keeping;
      if (found === undefined) return false;
      this.#queue.counters.retried++;
      onKept(found);
      return true;
    };
    return held.settle(send, true, call);
  }

  /**
   * Notes that a delivery is handed out that no read of this process returned; see the script `handOut`. Returns 0 if it
   * may be handed out now, or the milliseconds until then, and undefined if it is lost.
   */
  async handOut(held: Held, call?: Call): Promise<number | undefined> {
    held.isHandedOut = true;
    const left = await this.#handOut(held, held.entry.heldBackUntil ?? 0, call);
    if (left !== 0) held.isHandedOut = false;
    return left;
  }

  /**
   * Notes that a delivery that was read, perhaps a second time, is not handed out: the death of this process would be no
   * attempt. Does nothing once it was handed out. Never rejects: if Redis cannot be asked, the read counts.
   */
  async setAside(held: Held): Promise<void> {
    if (!held.isHandedOut) await this.#handOut(held, Infinity).catch(() => {});
  }

  async #handOut(held: Held, until: number, call?: Call): Promise<number | undefined> {
    const args = {
      ...this.#member,
      entry: held.entry.entryId,
      heldBackUntil: Math.min(until, NEVER),
    };
    const left = await this.#queue.change("hand out a message of", handOut, args, call);
    if (left === undefined) held.lose();
    return left;
  }

  /** Makes a message a dead letter. */
  bury(held: Held, reason: string, call?: Call): Promise<boolean> {
    const burial = burialOf(held, reason);
    return held.settle((ending) => this.#burials.add(burial, ending), true, call);
  }

  /**
   * Gives back an entry that is in flight for this consumer but not held; see `LeaseKeeper` and `Group`. If it has a
   * foreign format, it goes to the quarantine.
   */
  giveBackStranger(entry: string): Promise<boolean> {
    return this.#giveBacks.add({ entry, own: 0, bytes: UNKNOWN_BYTES, failure: undefined });
  }

  /** Acknowledges an entry that this group must not handle. */
  skip(entry: string): Promise<boolean> {
    return this.#acks.add({ entry, own: 0, bytes: 0 });
  }

  /** Renews the lease of a delivery. */
  extend(held: Held, call?: Call): Promise<boolean> {
    return held.extend(() => this.#extensions.add({ ...settlementOf(held), bytes: 0 }, call));
  }

  /**
   * Returns a delivery to its group as if it had not been made. Never rejects; resolves when the delivery is no longer
   * held, or the retries are over.
   *
   * The only consumer of a partition leaves the entry in flight instead. The next holder of the partition begins with
   * it, so no message overtakes it.
   */
  release(held: Held): Promise<void> {
    if (this.#isExclusive && !held.isAsked) return Promise.resolve(held.lose());
    return this.persist(held, () => this.#giveBack(held));
  }

  /**
   * Takes a delivery away from the user's code, and counts it as a failed attempt: the message returns to its group, or
   * becomes a dead letter if that was its last delivery. A delivery that the user's code never had is only
   * {@link release released}. Never rejects.
   */
  giveUp(held: Held, why: Error): Promise<void> {
    if (!held.isGiven) return this.release(held);
    held.abort(why);
    return this.persist(held, () =>
      held.isLast
        ? held.settle(() => this.#burials.add(burialOf(held, why.message)))
        : this.#giveBack(held, why.message),
    );
  }

  /**
   * Calls `settle` until the delivery is no longer held, or the retries are over. If a settlement was asked for and has
   * failed, that one is tried again instead. Never rejects.
   */
  async persist(held: Held, settle: () => Promise<boolean>): Promise<void> {
    const { unreachableTimeout } = this.#queue.server;
    let pause: Pause | undefined;
    const startedAt = networkTime.now();
    this.#persistingCount++;
    while (held.isHeld) {
      try {
        await held.settleAsAsked(settle);
        this.#work.succeeded();
      } catch (error) {
        if (this.#isClosed || error instanceof ClosedError) break;
        if (error instanceof RedisError) this.#work.failed(error);
        if (networkTime.now() > Math.max(startedAt, this.#stoppedAt) + unreachableTimeout) break;
        pause ??= new Pause(100, 2000);
        await pause.wait();
      }
    }
    if (--this.#persistingCount > 0) return;
    // The last settlement may have ended without a success: after a lost reply, a beat finds the entry gone.
    this.#work.stopped();
    this.#onNonePersisting();
  }

  /** The client begins to close: the time for retries starts to run. */
  stop(): void {
    this.#stoppedAt = networkTime.now();
  }

  /** Resolves when every settlement made so far has its reply or its error. */
  async settled(): Promise<void> {
    const all = [
      this.#acks,
      this.#steps,
      this.#retries,
      this.#burials,
      this.#giveBacks,
      this.#extensions,
    ];
    await Promise.all([this.#finishes.replied(), ...all.map((batch) => batch.done())]);
  }

  /** Ends the retries; resolves when no delivery is being settled by {@link persist}. */
  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#persistingCount > 0) {
      await new Promise<void>((resolve) => (this.#onNonePersisting = resolve));
    }
    this.#work.ended();
    this.#noting.ended();
  }

  /**
   * Makes a message ready again at once, or once it is no longer held back. Without a `failure` the delivery does not
   * count as an attempt.
   */
  #giveBack(held: Held, failure?: string): Promise<boolean> {
    const settlement = { ...settlementOf(held), failure, counter: counterOf(failure) };
    return held.settle(() => this.#giveBacks.add(settlement));
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
        const requests = batch.seal();
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

/** A settlement, with the columns of its row. */
interface Settlement {
  /** The entry's id in the stream. */
  readonly entry: string;
  /** Whether the entry is for this group only (1 or 0). */
  readonly own: 0 | 1;
  /** How many bytes the script has to read and write again. */
  readonly bytes: number;
  /** The counter to increment when it was carried out. */
  readonly counter?: keyof Pick<Counters, "acknowledged" | "retried" | "dead"> | undefined;
}

/** An acknowledgement, with the columns of its row. */
interface AckRow extends Pick<Settlement, "entry" | "own"> {
  /** The delivery that was handled; undefined for an entry that this group must not handle. */
  readonly held?: Held;
}

interface Acknowledgement extends Settlement, AckRow {}

/** An acknowledgement, and the messages that are offered in the same step. */
interface Following extends Settlement, Required<AckRow> {
  readonly landings: readonly Landing[];
  readonly ground: Ground;
}

/** Whether a message that was offered with `once` is among those that are acknowledged. */
function isOnceIn(requests: readonly AckRow[]): boolean {
  return requests.some(({ held }) => held !== undefined && isOnce(held.entry.trailer));
}

/** The columns of a note that a delivery was handled, `now` on the server's clock (epoch ms). */
function noteOf(held: Held | undefined, now: number) {
  if (held === undefined) return { address: "", key: "", attempt: "", took: "", keepKey: "" };
  const { entry, attempt, takenAt } = held;
  const { key = "", once = "" } = unpackTrailer(entry.trailer);
  const took = Number.isNaN(takenAt) ? "" : Math.max(0, Math.round(now - takenAt));
  return { address: entry.address, key, attempt, took, keepKey: key === "" ? "" : once };
}

function ownOf({ entry }: Held): 0 | 1 {
  return entry.group === undefined ? 0 : 1;
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

function settlementOf(held: Held): Settlement {
  const { entry } = held;
  const bytes = entry.payload.length + entry.trailer.length;
  return { entry: entry.entryId, own: ownOf(held), bytes };
}

function burialOf(held: Held, reason: string): Settlement & { reason: string } {
  return { ...settlementOf(held), reason: cut(reason, MAX_REASON), counter: "dead" };
}

/** Settlements per script, for scripts that write messages again: about 500 us of Redis's time. */
const MAX_WRITTEN = 25;

/** The most characters of a dead letter's reason. */
const MAX_REASON = 1000;

/** The most characters of a failure's reason that are sent; the script keeps 200 bytes of them. */
const MAX_FAILURE = 200;

/** An instant that does not come (epoch ms). */
const NEVER = 9e15;

/** A guess at the bytes of a stranger, which nobody here has read. */
const UNKNOWN_BYTES = 65_536;
