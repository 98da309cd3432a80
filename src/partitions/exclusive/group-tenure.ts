import { ClosedError } from "../../errors.ts";
import type { Counters } from "../../observe/counters.ts";
import type { TakeHeld } from "../../reliable/consuming/consuming.ts";
import type { Group, GroupSettings } from "../../reliable/group/group.ts";
import type { Held } from "../../reliable/group/held.ts";
import type { WaitOptions } from "../../run/waiters.ts";
import { sleep } from "../../time/sleep.ts";
import type { Tenure } from "./holding.ts";
import type { Lease } from "./lease.ts";
import type { Part } from "../parts/part.ts";

/**
 * Reads the stream of a partition while the lease lasts, one message at a time, as a separate consumer.
 *
 * It begins with the messages that its predecessors left in flight, and leaves its own in flight for its successor.
 * Giving them back instead would put them behind later messages. When the connection is lost, a lost reply may have
 * held an entry, which is then in flight. So the tenure ends, and the next one begins with that entry.
 *
 * A strict tenure keeps a failed message in flight until its pause is over, and hands it out again before any other. The
 * entry says until when, so a successor waits for the rest of the pause. A script judges by the server's clock whether
 * the pause is over, and then counts the delivery; until then, the death of this process is no attempt.
 */
export class GroupTenure implements Tenure {
  readonly done: Promise<void>;
  readonly #lease: Lease;
  readonly #own: Group;
  readonly #counters: Counters;
  /** The delivery that was handed out last. */
  #current: Held | undefined;
  #isConnected = false;
  #isEnded = false;
  /** Why nothing could be inherited. Whoever takes has to report it, and to pause before the next tenure. */
  #failure: unknown;
  /** Ends the current wait, and all later ones. */
  readonly #ending = new AbortController();
  /**
   * Deliveries in flight for this process that have to be handed out before anything is read, in order: the one that
   * failed, and those that predecessors left. Undefined before the first take.
   */
  #waiting: Held[] | undefined;

  constructor(
    part: Part,
    lease: Lease,
    settings: GroupSettings & { readonly isStrict: boolean },
    consume: (take: TakeHeld) => Promise<void>,
  ) {
    this.#lease = lease;
    this.#counters = part.queue.counters;
    this.#own = part.openExclusiveGroup(settings, {
      onConnected: (id, name) => this.#onConnected(id, name),
      keeping: settings.isStrict
        ? {
            // The next one to hand out.
            onKept: (entry) => this.#waiting?.unshift(...this.#own.adopt([entry])),
            // The script may have run. The next tenure inherits the new entry first.
            onFailed: () => {
              if (!this.#isEnded) this.end();
            },
          }
        : undefined,
    });
    lease.signal.addEventListener("abort", () => {
      this.#current?.abort(lease.signal.reason);
      this.end();
    });
    this.done = this.#run(consume);
  }

  end(): void {
    this.#isEnded = true;
    this.#ending.abort();
    // Settlements of the running handler are still sent, for as long as the client may take to close.
    void this.#own.stop();
  }

  async #takeUntilEnded({ timeout }: WaitOptions): Promise<readonly Held[]> {
    for (;;) {
      if (this.#isEnded) throw new ClosedError("the lease");
      try {
        const taken = await this.#take(timeout);
        for (const held of taken) held.lease = this.#lease;
        [this.#current] = taken;
        return taken;
      } catch (error) {
        if (!this.#isEnded || error === this.#failure) throw error;
      }
    }
  }

  async #run(consume: (take: TakeHeld) => Promise<void>): Promise<void> {
    if (this.#lease.signal.aborted) this.end();
    await consume((wait) => this.#takeUntilEnded(wait));
    for (const held of this.#waiting ?? []) held.lose();
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
    if (this.#waiting === undefined) {
      await this.#own.prepare({ signal });
      const { member, settings } = this.#own;
      try {
        const { entries, buried } = await this.#lease.inherit(member, settings.maxDeliveries);
        this.#waiting = this.#own.adopt(entries);
        this.#counters.dead += buried;
        this.#counters.reclaimed += entries.filter(({ isOrphan }) => isOrphan).length;
      } catch (error) {
        // The script may have run: the entries may be this consumer's already. The next tenure inherits them in order.
        this.end();
        this.#failure = error;
        throw error;
      }
    }
    if (this.#waiting.length === 0) {
      const read = await this.#own.take(1, { timeout, signal });
      if (read.every(({ entry }) => entry.heldBackUntil === undefined)) return read;
      // It waited when its partition was changed. Redis has counted the read, which was no attempt: the script decides
      // first.
      this.#waiting.push(...read);
      return await this.#handOutNext(this.#waiting, 0, signal);
    }
    const [next] = this.#waiting as [Held];
    // An estimate, which saves a script.
    const left = (next.entry.heldBackUntil ?? 0) - this.#own.now();
    return await this.#handOutNext(this.#waiting, left > 0 ? left : 0, signal);
  }

  /**
   * Hands out the first of the waiting deliveries once it is no longer held back, in about `left` milliseconds; none if
   * it is lost. The script decides, and returns how long the rest of the pause is.
   */
  async #handOutNext(waiting: Held[], left: number, signal: AbortSignal): Promise<readonly Held[]> {
    const [next] = waiting as [Held];
    let rest: number | undefined = left;
    do {
      // A consumer that is not exclusive may take it away. Then nothing has to wait for it.
      if (rest > 0) await sleep(rest, signal, next.signal);
      if (this.#isEnded) return [];
      rest = next.isHeld ? await this.#own.settlements.handOut(next, { signal }) : undefined;
    } while (rest !== undefined && rest > 0);
    waiting.shift();
    return next.isHeld ? [next] : [];
  }
}
