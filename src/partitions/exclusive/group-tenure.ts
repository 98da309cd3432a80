import { ClosedError } from "../../errors.ts";
import type { Counters } from "../../observe/counters.ts";
import type { ExclusiveSource } from "../../reliable/consuming/exclusive-deliveries.ts";
import type { Group, GroupFace, GroupSettings } from "../../reliable/group/group.ts";
import type { Held } from "../../reliable/group/held.ts";
import type { WaitOptions } from "../../queue/consuming/waiters.ts";
import { DeadlineTimer } from "../../time/deadline-timer.ts";
import type { Tenure } from "./holding.ts";
import type { Lease } from "./lease.ts";
import type { Part } from "../parts/part.ts";

/**
 * Reads the stream of a partition as long as the lease lasts, one message at a time, as a consumer of its own.
 *
 * First comes what predecessors had in flight. What this one leaves in flight, its successor begins with: so nothing is
 * given back, which would put it behind the others. If a connection is lost, a reply may have brought an entry with it;
 * then the tenure ends, and the next one begins with that.
 *
 * If it is strict, a message that has failed stays in flight until its pause is over, and is handed out again before any
 * other.
 */
export class GroupTenure implements Tenure, ExclusiveSource {
  readonly done: Promise<void>;
  readonly group: GroupFace;
  readonly #lease: Lease;
  readonly #own: Group;
  readonly #counters: Counters;
  /** What was handed out last. */
  #current: Held | undefined;
  #isConnected = false;
  #isEnded = false;
  /** Ends the wait that is under way, and all that follow. */
  readonly #ending = new AbortController();
  /** What has been in flight before; undefined before it was asked for. */
  #inherited: Held[] | undefined;
  /** What has failed, and when it is handed out again (`performance.now()`). */
  #next: { readonly held: Held; readonly at: number } | undefined;

  constructor(
    part: Part,
    lease: Lease,
    settings: GroupSettings,
    isStrict: boolean,
    consume: (source: ExclusiveSource) => Promise<void>,
  ) {
    this.#lease = lease;
    this.#counters = part.queue.counters;
    this.#own = part.openExclusiveGroup(settings, (id, name) => this.#onConnected(id, name));
    this.group = isStrict ? this.#strictly(this.#own) : this.#own;
    lease.signal.addEventListener("abort", () => {
      this.#current?.abort(lease.signal.reason);
      this.end();
    });
    this.done = this.#run(consume);
  }

  get isOurs(): boolean {
    return this.#lease.isOurs;
  }

  end(): void {
    this.#isEnded = true;
    this.#ending.abort();
    // What its handlers settle is tried for so long as the client may take to close.
    void this.#own.stop();
  }

  onChange(): void {
    // Nothing becomes ready while the number of partitions changes, and what is in flight can be seen.
  }

  async take({ timeout }: WaitOptions): Promise<readonly Held[]> {
    for (;;) {
      if (this.#isEnded) throw new ClosedError("the lease");
      try {
        const taken = await this.#take(timeout);
        for (const held of taken) held.fence = this.#lease.fence;
        [this.#current] = taken;
        return taken;
      } catch (error) {
        if (!this.#isEnded) throw error;
      }
    }
  }

  async #run(consume: (source: ExclusiveSource) => Promise<void>): Promise<void> {
    if (this.#lease.signal.aborted) this.end();
    await consume(this);
    this.#next?.held.lose();
    for (const held of this.#inherited ?? []) held.lose();
    await this.#own.stop();
    await this.#own.close();
  }

  async #onConnected(id: number, name: string): Promise<void> {
    if (this.#isConnected) {
      this.end();
      throw new ClosedError("the lease");
    }
    this.#isConnected = true;
    await this.#lease.note(id, name);
  }

  async #take(timeout: number): Promise<readonly Held[]> {
    const { signal } = this.#ending;
    if (this.#inherited === undefined) {
      await this.#own.prepare(signal);
      const { member, settings } = this.#own;
      try {
        const { entries, buried } = await this.#lease.inherit(member, settings.maxDeliveries);
        this.#inherited = this.#own.adopt(entries);
        this.#counters.dead += buried;
        this.#counters.reclaimed += entries.filter(({ isOrphan }) => isOrphan).length;
      } catch (error) {
        // Perhaps they are this consumer's by now: then the next tenure inherits them, in order.
        this.end();
        throw error;
      }
    }
    if (this.#next !== undefined) {
      await until(this.#next.at, signal);
      if (this.#isEnded) return [];
      const { held } = this.#next;
      this.#next = undefined;
      return held.isHeld ? [held] : [];
    }
    const first = this.#inherited.shift();
    if (first === undefined) return await this.#own.take(1, { timeout, signal });
    return first.isHeld ? [first] : [];
  }

  /** A group in which a message that has failed is handed out again before any other. */
  #strictly(group: Group): GroupFace {
    const { settlements } = group;
    return {
      settings: group.settings,
      checkTaking: () => group.checkTaking(),
      take: (max, wait) => group.take(max, wait),
      limit: (held, duration) => group.limit(held, duration),
      now: (held) => group.now(held),
      leaseEndsAt: (held) => group.leaseEndsAt(held),
      release: (held) => group.release(held),
      giveUp: (held, why) => group.giveUp(held, why),
      persist: (held, settle) => group.persist(held, settle),
      settlements: {
        ack: (held, signal) => settlements.ack(held, signal),
        bury: (held, reason, signal) => settlements.bury(held, reason, signal),
        extend: (held, signal) => settlements.extend(held, signal),
        retry: async (held, delay, failure, signal) => {
          if (failure === undefined) {
            throw new TypeError("what has not failed goes back by release()");
          }
          const entry = await settlements.again(held, failure, signal).catch((error: unknown) => {
            // Perhaps it is in flight anew: then the next tenure inherits it, before any other.
            this.end();
            throw error;
          });
          if (entry === undefined) return false;
          const [next] = group.adopt([entry]) as [Held];
          next.heldBackUntil = group.now(next) + delay;
          this.#next = { held: next, at: performance.now() + delay };
          return true;
        },
      },
    };
  }
}

/** Resolves at an instant (`performance.now()`), or when the signal is aborted. */
async function until(at: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    const end = () => {
      timer.clear();
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = new DeadlineTimer(end);
    timer.reset(at);
    signal.addEventListener("abort", end);
  });
}
