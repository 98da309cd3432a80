import { RevokedError } from "../../errors.ts";
import type { Queue } from "../../queue/queue.ts";
import { networkTime, queueTime } from "../../time/runtime.ts";
import type { Membership } from "./consumer-name.ts";
import type { Held, HeldDeliveries } from "./held.ts";
import { asTexts, type NoticeListener, type Notices } from "./notices.ts";

/**
 * The deliveries of one consumer whose messages were revoked. It aborts their signals, keeps those from a handler that it does
 * not have yet, and tells Redis when the handlers have ended, for which whoever revoked may wait.
 *
 * A notice and the reply that carries its entry come over two connections, and a handler may end between them. So both sides are
 * remembered for a while: the notices whose entry is not held, and the deliveries that were lost.
 */
export class RevokedDeliveries implements NoticeListener {
  readonly #queue: Queue;
  readonly #member: Membership;
  readonly #held: HeldDeliveries;
  readonly #onMissed: () => void;
  /** Deliveries that were lost while the user's code has them. */
  readonly #left = new Map<string, Held>();
  /** Entries of lost deliveries that the user's code is done with, by when it was (`networkTime.now()`). */
  readonly #done = new Map<string, number>();
  /** Entries of notices that came while they were not held, by when they came (`networkTime.now()`). */
  readonly #early = new Map<string, { readonly error: RevokedError; readonly at: number }>();

  /** `onMissed` is called when notices may have been missed. */
  constructor(queue: Queue, member: Membership, held: HeldDeliveries, onMissed: () => void) {
    this.#queue = queue;
    this.#member = member;
    this.#held = held;
    this.#onMissed = onMissed;
  }

  listen(notices: Notices): void {
    notices.listen(this.#member.consumer, this);
  }

  /** Whether the user's code has deliveries that are no longer held: the consumer has to show that it lives. */
  get areRunning(): boolean {
    // One that was taken by hand and never settled would have gone back by now.
    const now = queueTime.now();
    for (const held of this.#left.values()) if (held.leaseEndsAt <= now) this.ended(held);
    return this.#left.size > 0;
  }

  onMissed(): void {
    if (this.#held.size > 0) this.#onMissed();
  }

  onRevoked(entryId: string, reason: string | undefined): void {
    const error = this.#errorFor(reason);
    const held = this.#held.get(entryId);
    if (held !== undefined) return held.revoke(error);
    const left = this.#left.get(entryId);
    if (left !== undefined) left.revoke(error);
    else if (this.#done.delete(entryId)) this.#tellEnded(entryId);
    else this.#expect(entryId, error);
  }

  /** Revokes an entry that was just read, if a notice came before; returns whether it did. */
  meets(held: Held): boolean {
    const early = this.#early.size > 0 ? this.#early.get(held.entry.entryId) : undefined;
    if (early === undefined) return false;
    this.#early.delete(held.entry.entryId);
    held.revoke(early.error);
    return true;
  }

  /** To be called when a delivery was lost: Redis has replied that it is not in flight for this consumer. */
  lost(held: Held): void {
    if (held.isGiven && !held.isOver) this.#left.set(held.entry.entryId, held);
    else this.#end(held);
  }

  /** To be called when the user's code is done with a delivery that is no longer held. */
  ended(held: Held): void {
    if (this.#left.delete(held.entry.entryId)) this.#end(held);
  }

  /** Loses deliveries that a beat has not found, each for its own reason. */
  async lose(missing: readonly Held[]): Promise<void> {
    const fields = missing.map((held) => this.#fieldOf(held.entry.entryId));
    const { background } = this.#queue.server.connections;
    const notes = await background
      .hmget(this.#queue.keys.revoked, ...fields)
      .catch((): null[] => []);
    for (const [i, held] of missing.entries()) {
      const [consumer, reason = ""] = asTexts(notes[i] ?? "");
      if (consumer === this.#member.consumer)
        held.revoke(this.#errorFor(reason === "" ? undefined : reason));
      else if (!held.isSettling) held.lose();
    }
  }

  unlisten(notices: Notices): void {
    notices.unlisten(this.#member.consumer);
  }

  #end(held: Held): void {
    const { entryId } = held.entry;
    if (held.isRevoked) return this.#tellEnded(entryId);
    const now = networkTime.now();
    dropOld(this.#done, now - REMEMBERED, (at) => at);
    this.#done.set(entryId, now);
  }

  /** A reply may still bring the entry. If it does not soon, it was lost, or the delivery was settled in the same moment. */
  #expect(entryId: string, error: RevokedError): void {
    const at = networkTime.now();
    dropOld(this.#early, at - REMEMBERED, (early) => early.at);
    this.#early.set(entryId, { error, at });
    networkTime
      .setTimeout(() => {
        if (this.#early.get(entryId)?.at === at) this.#tellEnded(entryId);
      }, SOON)
      .unref();
  }

  #tellEnded(entryId: string): void {
    const { background } = this.#queue.server.connections;
    // If it fails, whoever waits for the end waits for as long as it wants to.
    void background.hdel(this.#queue.keys.revoked, this.#fieldOf(entryId)).catch(() => {});
  }

  #fieldOf(entryId: string): string {
    return `${entryId} ${this.#member.group}`;
  }

  #errorFor(reason: string | undefined): RevokedError {
    return new RevokedError(this.#queue.counters.queue, reason);
  }
}

/** Removes the first values, which are the oldest, as long as they are older than `bound`. */
function dropOld<Value>(
  map: Map<string, Value>,
  bound: number,
  atOf: (value: Value) => number,
): void {
  for (const [name, value] of map) {
    if (atOf(value) > bound) return;
    map.delete(name);
  }
}

/** Milliseconds for which a notice without a delivery, and a delivery without a notice, are remembered. */
const REMEMBERED = 60_000;

/** Milliseconds after which a notice without a delivery counts as told: no handler has it. */
const SOON = 1000;
