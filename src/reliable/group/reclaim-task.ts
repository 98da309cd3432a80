import { RedisError } from "../../errors.ts";
import { consumers } from "../../lua/reliable/consumers.ts";
import { leave } from "../../lua/reliable/leave.ts";
import { reclaim } from "../../lua/reliable/reclaim.ts";
import { trim } from "../../lua/reliable/trim.ts";
import { run } from "../../lua/script.ts";
import type { Queue } from "../../queue/queue.ts";
import type { Connections } from "../../redis/connections.ts";
import type { Troubles, Work } from "../../redis/troubles.ts";
import { Pause } from "../../time/pause.ts";
import { ReclaimWatch } from "./reclaim-watch.ts";
import type { Membership } from "./settlements.ts";

/**
 * Lets the messages of dead consumers come back. Every process of a group watches all the others.
 *
 * {@link ReclaimWatch} decides who is dead, from how long each consumer has been silent. What it had in hand is
 * appended to the stream again in one script, which asks once more; so any number of processes may find the same
 * one dead at once, and one that is killed while it reclaims leaves nothing half done. A message that was delivered
 * as often as it may becomes a dead letter.
 *
 * It also deletes what is left of the stream where a group was destroyed: an entry that only that group still needed.
 *
 * Consumers that have nothing in flight and were silent for long are struck out: a process that ended without a
 * word leaves its name behind.
 */
export class ReclaimTask {
  readonly #queue: Queue;
  readonly #member: Membership;
  readonly #maxDeliveries: number;
  readonly #visibilityTimeout: number;
  readonly #connections: Connections;
  readonly #work: Work;
  readonly #watch: ReclaimWatch;
  readonly #pause = new Pause(100, 5000);
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | undefined;
  #isClosed = false;
  /** When to trim again (`performance.now()`). */
  #trimAt = -Infinity;

  constructor(
    queue: Queue,
    member: Membership,
    settings: { readonly visibilityTimeout: number; readonly maxDeliveries: number },
    shared: { readonly connections: Connections; readonly troubles: Troubles },
  ) {
    this.#queue = queue;
    this.#member = member;
    this.#maxDeliveries = settings.maxDeliveries;
    this.#visibilityTimeout = settings.visibilityTimeout;
    this.#connections = shared.connections;
    this.#work = shared.troubles.work();
    const { visibilityTimeout } = settings;
    this.#watch = new ReclaimWatch({ visibilityTimeout, self: member.consumer });
  }

  /** Watches from now on. */
  start(): void {
    if (this.#timer !== undefined || this.#isClosed) return;
    this.#arm(0);
  }

  /** Stops; resolves when nothing is under way any more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#looking;
    this.#work.ended();
  }

  #arm(delay: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#looking = this.#look();
    }, delay);
  }

  /** Never rejects. */
  async #look(): Promise<void> {
    let next: number;
    try {
      next = await this.#reclaimDead();
      this.#work.succeeded();
      this.#pause.reset();
    } catch (error) {
      if (this.#isClosed) return;
      const doing = `cannot reclaim messages of queue "${this.#queue.name}"`;
      this.#work.failed(new RedisError(doing, error));
      next = this.#pause.take();
    }
    if (!this.#isClosed) this.#arm(next);
  }

  /** Returns in how many milliseconds to look again. */
  async #reclaimDead(): Promise<number> {
    const { background } = this.#connections;
    const { keys, counters } = this.#queue;
    const { group } = this.#member;
    const found = await run(background, consumers, keys, { group });
    const { dead, lookIn } = this.#watch.look(found, performance.now());
    for (const { name: consumer, idle } of dead) {
      const args = { group, consumer, idle, maxDeliveries: this.#maxDeliveries, limit: RECLAIMED };
      let isLeft = true;
      while (isLeft && !this.#isClosed) {
        const reply = await run(background, reclaim, keys, args);
        counters.reclaimed += reply.reclaimed;
        counters.dead += reply.buried;
        ({ isLeft } = reply);
      }
    }
    const isLongGone = ({ inFlight, idle }: { inFlight: number; idle: number }) =>
      inFlight === 0 && idle > Math.max(GONE * this.#visibilityTimeout, MINUTE);
    for (const { name: consumer } of found.filter(isLongGone)) {
      if (consumer === this.#member.consumer) continue;
      await run(background, leave, keys, { group, consumer });
    }
    await this.#trim();
    // Others may have shorter timeouts than we.
    return Math.min(lookIn, LONGEST);
  }

  /** Drops what nobody needs any more since a group was destroyed; now and then, a step at a time. */
  async #trim(): Promise<void> {
    if (performance.now() < this.#trimAt) return;
    const { background } = this.#connections;
    const count = await run(background, trim, this.#queue.keys, { limit: BATCH });
    this.#trimAt = performance.now() + (count === BATCH ? 0 : TRIM * (0.8 + 0.4 * Math.random()));
  }
}

/** Messages of a dead consumer per script: some 500 microseconds of Redis's time. */
const RECLAIMED = 25;

/** Entries that one step of trimming looks at: some 500 microseconds. */
const BATCH = 100;

/** Milliseconds between two looks at most. */
const LONGEST = 20_000;

/** Milliseconds between two steps of trimming, on average. */
const TRIM = 30_000;

/** Visibility timeouts of silence after which a consumer with nothing in flight is struck out; a minute at least. */
const GONE = 10;
const MINUTE = 60_000;
