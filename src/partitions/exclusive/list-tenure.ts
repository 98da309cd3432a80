import { ClosedError } from "../../errors.ts";
import type { HeldTaken, TakeHeld } from "../../ready/exclusive-take.ts";
import type { Taken } from "../../ready/blocking-connection.ts";
import type { Taker } from "../../ready/taker.ts";
import type { WaitOptions } from "../../queue/consuming/waiters.ts";
import { sleep } from "../../time/sleep.ts";
import type { Tenure } from "./holding.ts";
import type { Lease } from "./lease.ts";
import type { Part } from "../parts/part.ts";
import type { Parts } from "../parts/parts.ts";

/**
 * Takes from the ready LIST of a partition while the lease lasts, for one handler, over a connection of its own.
 *
 * While the number of partitions changes it closes that connection, and takes with a script instead. Unlike a BLPOP,
 * the script checks the fence, and notes in Redis that nothing is left.
 */
export class ListTenure implements Tenure {
  readonly done: Promise<void>;
  readonly #part: Part;
  readonly #lease: Lease;
  readonly #parts: Parts;
  #taker: Taker;
  #isEnded = false;
  /** Whether the state was `holding` when the current wait began. */
  #isWaitHolding = false;
  /** Ends the current wait. */
  #interrupt = new AbortController();

  /** `consume` has to resolve once the take that it is given has rejected and its handler is done. */
  constructor(part: Part, lease: Lease, parts: Parts, consume: (take: TakeHeld) => Promise<void>) {
    this.#part = part;
    this.#lease = lease;
    this.#parts = parts;
    this.#taker = this.#newTaker();
    lease.signal.addEventListener("abort", () => this.end());
    this.done = this.#run(consume);
  }

  end(): void {
    this.#isEnded = true;
    this.#interrupt.abort();
  }

  onChange(): void {
    if (this.#isHolding !== this.#isWaitHolding) this.#interrupt.abort();
  }

  async #run(consume: (take: TakeHeld) => Promise<void>): Promise<void> {
    if (this.#lease.signal.aborted) this.end();
    await consume((wait) => this.#take(wait));
    await this.#taker.close();
  }

  get #isHolding(): boolean {
    return this.#parts.fact?.state === "holding";
  }

  async #take(wait: WaitOptions): Promise<readonly HeldTaken[]> {
    for (;;) {
      if (this.#isEnded) throw new ClosedError("the lease");
      this.#interrupt = new AbortController();
      this.#isWaitHolding = this.#isHolding;
      try {
        const taken = this.#isWaitHolding ? await this.#pop() : await this.#wait(wait);
        if (taken.length > 0 || !this.#isWaitHolding) return taken.map((one) => this.#held(one));
        await sleep(LOOK, this.#interrupt.signal);
      } catch (error) {
        if (!this.#interrupt.signal.aborted) throw error;
      }
    }
  }

  #wait(wait: WaitOptions): Promise<readonly Taken[]> {
    if (this.#taker.isClosed) this.#taker = this.#newTaker();
    // Closing the subscription ends this tenure as well, so `wait.signal` is not needed.
    return this.#taker.wait(1, { timeout: wait.timeout, signal: this.#interrupt.signal });
  }

  async #pop(): Promise<readonly Taken[]> {
    // Once the taker is closed, everything that it had taken is back in the LIST. Only then may the script note that
    // nothing is left.
    if (!this.#taker.isClosed) await this.#taker.close();
    const { pauses, queue } = this.#part;
    if (pauses.isPaused === undefined) await pauses.known();
    const { fact } = this.#parts;
    if (pauses.isPaused === true || fact?.state !== "holding" || this.#isEnded) return [];
    const payload = await this.#lease.pop(fact.epoch);
    const { ready, receipts } = queue.keys;
    return payload === undefined ? [] : [{ payload, source: { ready, receipts } }];
  }

  #held(taken: Taken): HeldTaken {
    const lease = this.#lease;
    return {
      payload: taken.payload,
      fence: lease.fence,
      signal: lease.signal,
      get isOurs() {
        return lease.isOurs;
      },
      putBack: () => this.#taker.putBack([taken]),
    };
  }

  #newTaker(): Taker {
    return this.#part.ready.exclusive((id, name) => this.#lease.note(id, name));
  }
}

/** Milliseconds between two looks into an empty partition while the number of partitions changes. */
const LOOK = 500;
