import { consumers, leave } from "../../lua/reliable/consumers.ts";
import { reclaim } from "../../lua/reliable/reclaim.ts";
import { trim } from "../../lua/reliable/groups.ts";
import type { Queue } from "../../queue/queue.ts";
import { Task } from "../../run/task.ts";
import type { Membership } from "./consumer-name.ts";
import { ReclaimWatch } from "./reclaim-watch.ts";
import { queueTime } from "../../time/runtime.ts";

/**
 * Returns messages that dead consumers had in flight to their group. Every process of a group watches all the others.
 *
 * Each look goes through these steps:
 *
 * 1. It asks Redis for all consumers of the group. {@link ReclaimWatch} judges by their silence which are dead.
 * 2. For each dead one it runs the script `reclaim`, which checks the silence again, appends the consumer's entries to the stream
 *    as new ones with one attempt more, and removes the consumer. A message that has had its last delivery becomes a dead letter,
 *    and one that is held back a retry. Several processes may find the same consumer dead: each entry is reclaimed once. A process
 *    that is killed in between leaves nothing half done.
 * 3. It removes consumers that have had nothing in flight for long. A killed process leaves its name behind.
 * 4. From time to time it trims the stream: a destroyed group leaves entries that only that group still needed.
 *
 * A look that fails is reported, and repeated after a growing pause.
 */
export class ReclaimTask {
  readonly #queue: Queue;
  readonly #member: Membership;
  readonly #maxAttempts: number;
  readonly #leaseTimeout: number;
  readonly #watch: ReclaimWatch;
  readonly #task: Task;
  /** When to trim next (`queueTime.now()`). */
  #trimAt = -Infinity;
  /** Whether no other consumer had anything in flight at the last look. */
  #isQuiet = true;

  constructor(
    queue: Queue,
    member: Membership,
    settings: { readonly leaseTimeout: number; readonly maxAttempts: number },
  ) {
    this.#queue = queue;
    this.#member = member;
    this.#maxAttempts = settings.maxAttempts;
    this.#leaseTimeout = settings.leaseTimeout;
    const { leaseTimeout } = settings;
    this.#watch = new ReclaimWatch({ leaseTimeout, self: member.consumer });
    this.#task = new Task(
      () => this.#look(),
      `cannot reclaim messages of queue "${queue.name}"`,
      queue.server.troubles.work(),
      undefined,
      () => this.#isQuiet,
    );
  }

  /** Starts to watch. */
  start(): void {
    this.#task.start();
  }

  /** Stops; resolves when no look is under way. */
  close(): Promise<void> {
    return this.#task.close();
  }

  /** Returns the milliseconds until the next look. */
  async #look(): Promise<number> {
    const { background } = this.#queue.server.connections;
    const queue = this.#queue;
    const { counters } = queue;
    const { group, consumer } = this.#member;
    const { channel } = queue.keys;
    const found = await (this.#isQuiet
      ? queue.runTogether(background, consumers, { group })
      : queue.run(background, consumers, { group }));
    this.#isQuiet = found.every(({ name, inFlight }) => name === consumer || inFlight === 0);
    const { dead, lookIn } = this.#watch.look(found, queueTime.now());
    let failure: unknown;
    for (const { name, idle } of dead) {
      const maxAttempts = this.#maxAttempts;
      const args = { channel, group, consumer: name, idle, maxAttempts, limit: RECLAIMED };
      try {
        let isLeft = true;
        while (isLeft && !this.#task.isStopped) {
          const reply = await queue.run(background, reclaim, args);
          counters.reclaimed += reply.reclaimed;
          counters.dead += reply.buried;
          ({ isLeft } = reply);
        }
      } catch (error) {
        // What Redis refuses for one consumer must not hold up the messages of the others.
        failure ??= error;
      }
    }
    if (failure !== undefined) throw failure;
    const isLongGone = ({ inFlight, idle }: { inFlight: number; idle: number }) =>
      inFlight === 0 && idle > Math.max(GONE * this.#leaseTimeout, MINUTE);
    for (const { name } of found.filter(isLongGone)) {
      if (name === consumer) continue;
      await queue.run(background, leave, { group, consumer: name });
    }
    await this.#trim();
    // Consumers with shorter timeouts than ours may join during the pause.
    const pause = Math.min(lookIn, MAX_PAUSE);
    return this.#isQuiet ? queue.server.steps.until(pause) : pause;
  }

  /** Deletes some entries that no group still needs, if it is time. */
  async #trim(): Promise<void> {
    if (queueTime.now() < this.#trimAt) return;
    const { background } = this.#queue.server.connections;
    const count = await this.#queue.runTogether(background, trim, { limit: BATCH });
    const { steps } = this.#queue.server;
    this.#trimAt = queueTime.now() + (count === BATCH ? 0 : steps.until(TRIM) - EARLY);
  }
}

/** Entries that one run of `reclaim` moves: about 500 us of Redis's time. */
const RECLAIMED = 25;

/** Entries that one run of `trim` examines: about 500 us of Redis's time. */
const BATCH = 100;

/** The longest interval between two looks (ms). */
const MAX_PAUSE = 20_000;

/** Milliseconds between two runs of `trim`. */
const TRIM = 30_000;

/** Milliseconds by which the look that is to trim may come before that instant. */
const EARLY = 100;

/** Lease timeouts of silence after which a consumer with nothing in flight is removed; a minute at least. */
const GONE = 10;
const MINUTE = 60_000;
