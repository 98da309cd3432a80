import { RedisError } from "../../errors.ts";
import { beginChange, changeFact, noteDone, readFact } from "../../lua/partitions/fact.ts";
import { drainPage, type Left } from "../../lua/partitions/drain-page.ts";
import { hold, raiseFence, releaseHold } from "../../lua/partitions/hold.ts";
import { raisePaces, usedPaces } from "../../lua/partitions/lane-paces.ts";
import { isInUse, removeRemains } from "../../lua/partitions/partition.ts";
import type { Batch } from "../../lua/fragments/journal.ts";
import type { Call, CallOptions } from "../../queue/call.ts";
import { checkFunction, checkOptions, checkSignal } from "../../queue/checks.ts";
import { limitsLanes, readFlow } from "../../queue/flow.ts";
import { grouped } from "../../queue/grouped.ts";
import { bucketOfKey } from "../../queue/message/bucket.ts";
import { MAX_PARTITIONS } from "../../queue/options.ts";
import { Pause } from "../../time/pause.ts";
import { queueTime } from "../../time/runtime.ts";
import {
  activeOf,
  destinationOf,
  FROM_ORDINARY,
  formatDone,
  formatFact,
  hasOrdinary,
  isWithOrdinary,
  leavingOf,
  ORDINARY,
  parseFact,
  type Fact,
} from "../ring/fact.ts";
import { tellOrdinary } from "../parts/creation.ts";
import { MEMBER_TIMEOUT } from "../parts/member.ts";
import { DURATION, endConnection } from "../exclusive/lease.ts";
import type { Part } from "../parts/part.ts";
import type { Parts } from "../parts/parts.ts";
import { prepare } from "../parts/prepare.ts";
import { tableOf } from "../ring/ring.ts";
import { isRefusedByFact } from "../parts/refusal.ts";
import type { Routing } from "../routing/routing.ts";

/** The progress of a change of the number of partitions. */
export interface ChangeProgress {
  /** How many messages this call has migrated. */
  readonly moved: number;
  /** How many messages the last page left in a partition that is being removed; 0 while only delayed ones migrate. */
  readonly left: number;
}

/** Options of `setPartitions`. */
export interface SetPartitionsOptions extends CallOptions {
  /**
   * Called with `{ moved, left }` after each step that has migrated messages or has found some left: how many this call
   * has moved, and how many the last step left in partitions that are removed. Defaults to no callback.
   */
  readonly onProgress?: (progress: ChangeProgress) => void;
}

/** @throws {TypeError} naming the option, the rule and the value, if an option is not legal. */
export function checkSetPartitions(options: SetPartitionsOptions): void {
  checkOptions("setPartitions option", options, ["onProgress", "signal"]);
  const { onProgress, signal } = options;
  checkSignal(signal);
  if (onProgress !== undefined) checkFunction("onProgress", onProgress);
}

/**
 * Changes the number of a queue's partitions while the queue is in use.
 *
 * Any process may begin a change, and any may finish it: the fact shows what is left to do. First the new fact is
 * written beside every partition, so Redis refuses processes that know less. Then the delayed messages migrate, a page
 * at a time, then the ready messages, and everything else in partitions that are removed. During the change, a call
 * that looks for a message migrates that message itself.
 *
 * If the queue is consumed exclusively, the state is `holding`: no message becomes ready, and no consumer takes a
 * lease. The change itself takes the lease of each partition, as its holder's successor. So no handler runs once the
 * messages in hand and those that are ready move, in their order, to where their keys belong. The lease belongs to the
 * change, not to a process: whoever goes on with a change has it already.
 */
export class Change {
  readonly #parts: Parts;
  readonly #routing: Routing;
  readonly #call: Call;
  readonly #onProgress: (progress: ChangeProgress) => void;
  #moved = 0;

  constructor(parts: Parts, routing: Routing, { signal, onProgress }: SetPartitionsOptions) {
    this.#parts = parts;
    this.#routing = routing;
    this.#call = { signal };
    this.#onProgress = onProgress ?? (() => {});
  }

  /**
   * Resolves when the queue has `count` partitions and every message is where it belongs. Messages in the ordinary
   * queue of the same name migrate as well, even if the number stays the same.
   */
  async run(count: number): Promise<void> {
    let hasComeTrue = false;
    let hasTakenIn = false;
    for (;;) {
      this.#call.signal?.throwIfAborted();
      const fact = await this.#parts.following.ask(this.#call);
      const { to, state } = fact;
      try {
        if (state === "stable" && to === count) {
          if (hasTakenIn || !(await this.#isOrdinaryLeft())) break;
          await this.#begin(fact, count, FROM_ORDINARY);
          await this.#noteDeed(count);
        } else if (hasComeTrue && to !== count) {
          // This number has been reached, and another process has changed it since.
          break;
        } else if (state === "stable") {
          await this.#begin(fact, count, to);
          await this.#noteDeed(count, to);
        } else {
          await this.#finish(fact);
        }
      } catch (error) {
        await this.#lookAgain(fact, error);
      }
      // After a refusal this change has ended as well, or messages are gathered again for the same number.
      if (state !== "stable") {
        hasComeTrue ||= to === count;
        hasTakenIn ||= hasOrdinary(fact);
      }
    }
    await this.#recover();
  }

  async #noteDeed(count: number, before?: number): Promise<void> {
    const detail = before === undefined ? String(count) : `${count} instead of ${before}`;
    await this.#parts.activity.note({ what: "partitions set", detail });
  }

  /** Finishes the change under way, which another process has begun. */
  async finish(): Promise<void> {
    for (;;) {
      this.#call.signal?.throwIfAborted();
      const fact = await this.#parts.following.ask(this.#call);
      // While the ordinary queue is a part, its processes may still be there unseen.
      if (fact.state === "stable" || isWithOrdinary(fact)) break;
      try {
        await this.#finish(fact);
      } catch (error) {
        await this.#lookAgain(fact, error);
      }
    }
    await this.#recover();
  }

  /** After a failure: resolves if another process has taken the next step, or Redis went back. */
  async #lookAgain(fact: Fact, error: unknown): Promise<void> {
    if (error instanceof WentBack) return;
    if (!isRefusedByFact(error)) throw error;
    await this.#parts.following.newerThan(fact, error, this.#call);
  }

  /**
   * Migrates what is left in a partition that the queue no longer has, and tidies it. Returns false if a change is under
   * way, so that it has to be done later.
   */
  async drainLate(partition: number): Promise<boolean> {
    const fact = await this.#parts.following.known();
    if (activeOf(fact).includes(partition)) return true;
    if (fact.state !== "stable") return false;
    await this.#drain(fact, partition, { mayWait: false });
    if (partition === ORDINARY) return true;
    const { queue } = this.#parts.at(partition);
    const options = { ...this.#call, knownFact: formatFact(fact) };
    await queue.read("tidy", removeRemains, {}, options);
    return true;
  }

  /**
   * Finishes what dead processes left behind: open batches, also of a process that was leaving the ordinary queue, and
   * messages that were given back to removed partitions.
   * Every partition that ever was in use holds a fact, so the search ends at the first one without.
   */
  async #recover(): Promise<void> {
    const fact = await this.#parts.following.known(this.#call);
    if (fact.state !== "stable") return;
    try {
      await fewAtOnce([ORDINARY, ...activeOf(fact)], (partition) =>
        this.#finishBatch(fact, partition),
      );
      for (let partition = fact.to; partition < MAX_PARTITIONS; partition++) {
        const { queue } = this.#parts.at(partition);
        if ((await queue.read("look into", readFact, {}, this.#call)) === undefined) return;
        await this.drainLate(partition);
      }
    } catch (error) {
      // Another process has begun a change or Redis went back: whoever ends the change does the same.
      if (!isRefusedByFact(error)) throw error;
    }
  }

  /** Whether processes that know of no partitions have left messages in the ordinary queue. */
  #isOrdinaryLeft(): Promise<boolean> {
    return this.#parts.ordinary.queue.read("look at", isInUse, { asked: "left" }, this.#call);
  }

  async #begin(fact: Fact, count: number, from: number): Promise<void> {
    const { first } = this.#parts;
    const { notice } = this.#parts.following;
    const next: Fact = { ...fact, epoch: fact.epoch + 1, to: count, from, state: "moving" };
    // Prepare the new partitions before any process can know them. #announce does it again: the queue may be paused in
    // between.
    await this.#prepare(next, fact);
    const args = {
      expected: formatFact(fact),
      fact: formatFact(next),
      holding: formatFact({ ...next, state: "holding" }),
      notice,
      timeout: MEMBER_TIMEOUT,
    };
    this.#learn(await first.queue.read("change the partitions of", beginChange, args, this.#call));
  }

  #prepare(fact: Fact, known: Fact): Promise<void> {
    return prepare((partition) => this.#parts.at(partition), fact, { known, call: this.#call });
  }

  /** Prepares the new partitions, and writes the fact beside all, so that each refuses processes that know less. */
  async #announce(fact: Fact): Promise<void> {
    await this.#prepare(fact, fact);
    await this.#writeToAll(fact);
  }

  async #finish(fact: Fact): Promise<void> {
    await this.#announce(fact);
    // Open batches of an earlier change still go where that change sent them.
    await fewAtOnce(activeOf(fact), (partition) => this.#finishBatch(fact, partition));
    const sources = leavingOf(fact);
    // First: no schedule is planned while it migrates.
    await fewAtOnce(sources, (source) =>
      this.#routing.migration.migrateAllSchedules(fact, source, this.#call),
    );
    const migrateAll = (cursor?: Buffer) =>
      fewAtOnce(sources, (source) => this.#migrateAll(fact, source, cursor));
    const [leases] = await Promise.all([this.#takeLeases(fact), migrateAll()]);
    await fewAtOnce(sources, (source) =>
      this.#drain(fact, source, { mayWait: true, fenced: leases.get(source)?.fenced }),
    );
    // Failed handlers and redriven dead letters have added retries since.
    await migrateAll(RETRIES);
    await fewAtOnce(sources, (source) => this.#carryPaces(fact, source));
    await this.#release(fact, leases);
    await this.#settle(fact);
  }

  /**
   * Takes the leases of all partitions, if the queue is consumed exclusively: nothing may be read from partitions that messages
   * leave; and where they arrive, no handler with an older fence may run.
   */
  async #takeLeases(fact: Fact): Promise<Map<number, ChangeLease>> {
    const leases = new Map<number, ChangeLease>();
    if (fact.state !== "holding") return leases;
    const { signal } = this.#call;
    // If one is refused, the others must not wait for handlers any more.
    const failing = new AbortController();
    const either = signal ? AbortSignal.any([signal, failing.signal]) : failing.signal;
    await Promise.all(
      activeOf(fact).map(async (partition) => {
        try {
          leases.set(partition, await takeForChange(this.#parts.at(partition), fact, either));
        } catch (error) {
          failing.abort(error);
          throw error;
        }
      }),
    );
    return leases;
  }

  /** Lets consumers take the partitions again, with fences above all that their keys have seen. */
  async #release(fact: Fact, leases: ReadonlyMap<number, ChangeLease>): Promise<void> {
    if (leases.size === 0) return;
    const options = { ...this.#call, knownFact: formatFact(fact) };
    await fewAtOnce([...leases], async ([source, lease]) => {
      const { queue } = this.#parts.at(source);
      const own = { process: changeHolder(fact), fence: lease.fence };
      await queue.read("release the lease on", releaseHold, own, options);
    });
    // After the release, which is for the fence that the lease was taken with.
    const fence = Math.max(...Array.from(leases.values(), (lease) => lease.fence));
    await fewAtOnce(activeOf(fact), async (partition) => {
      const { queue } = this.#parts.at(partition);
      await queue.read("raise the fence of", raiseFence, { fence }, options);
    });
  }

  /**
   * Carries over what lanes have used of their rates to the partitions that they have moved to, where they get no turns before
   * the change has ended.
   */
  async #carryPaces(fact: Fact, source: number): Promise<void> {
    const { queue } = this.#parts.at(source);
    const flow = await readFlow(queue, this.#call);
    if (flow === undefined || !limitsLanes(flow, "rate")) return;
    const options = { ...this.#call, knownFact: formatFact(fact) };
    let cursor = "0";
    do {
      const args: { cursor: string } = { cursor };
      const page = await queue.read("look at the lanes of", usedPaces, args, options);
      ({ cursor } = page);
      // Messages without a lane are in every partition.
      const moved = page.paces.filter(
        ({ name }) => name !== "" && destinationOf(fact, bucketOfKey(name)) !== source,
      );
      const destinations = grouped(moved, ({ name }) => destinationOf(fact, bucketOfKey(name)));
      for (const [to, rows] of destinations) {
        const { queue: there } = this.#parts.at(to);
        await there.read("set the flow of", raisePaces, {}, { ...options, rows });
      }
    } while (cursor !== "0");
  }

  /**
   * Ends the change with a stable fact, which may follow in each partition once all have noted that they are done.
   * Partition 0 gets that fact last. By then Redis refuses to take messages out of the others for this change, and every
   * batch that was taken out has arrived.
   */
  async #settle(fact: Fact): Promise<void> {
    const { epoch, to, servers } = fact;
    const stable: Fact = { epoch: epoch + 1, to, from: to, state: "stable", servers };
    await fewAtOnce(activeOf(fact), (partition) => this.#noteDone(fact, partition));
    const others = activeOf(fact).filter((partition) => partition !== 0);
    await fewAtOnce(others, (partition) => this.#finishBatch(stable, partition));
    await this.#replace(fact, stable);
    await this.#finishBatch(stable, 0);
    await fewAtOnce(others, async (partition) => void (await this.drainLate(partition)));
  }

  #finishBatch(fact: Fact, partition: number): Promise<void> {
    return this.#routing.migration.finish(fact, partition, this.#call);
  }

  async #writeToAll(fact: Fact): Promise<void> {
    const knownFact = formatFact(fact);
    await fewAtOnce(activeOf(fact), async (partition) => {
      const { queue } = this.#parts.at(partition);
      // A script that is checked writes it down.
      const options = { ...this.#call, knownFact };
      await queue.read("change the partitions of", readFact, {}, options);
      if (partition === ORDINARY) await tellOrdinary(queue, knownFact);
    });
  }

  /** Notes that a partition has nothing left to migrate. */
  async #noteDone(fact: Fact, partition: number): Promise<void> {
    const { queue } = this.#parts.at(partition);
    const args = { fact: formatFact(fact), done: formatDone(fact) };
    if (await queue.read("change the partitions of", noteDone, args, this.#call)) return;
    throw new WentBack();
  }

  /** Migrates all delayed messages and retries that belong elsewhere, beginning at the cursor `first`. */
  async #migrateAll(fact: Fact, source: number, first?: Buffer): Promise<void> {
    let cursor = first;
    do {
      this.#call.signal?.throwIfAborted();
      const page = await this.#routing.migration.migratePage(fact, source, cursor, this.#call);
      this.#note(page.count, 0);
      cursor = page.next;
    } while (cursor !== undefined);
  }

  /**
   * Migrates what is ready out of a partition, and everything else if the partition is removed. If it `mayWait`, waits
   * for messages of a removed partition that live consumers hold. `fenced` is passed to {@link drainPage}.
   */
  async #drain(
    fact: Fact,
    source: number,
    {
      mayWait,
      fenced = [],
    }: { readonly mayWait: boolean; readonly fenced?: readonly string[] | undefined },
  ): Promise<void> {
    const pause = new Pause(10, 500);
    const isRemoved = source >= fact.to || source === ORDINARY;
    let [after, letter] = ["", ""];
    for (;;) {
      this.#call.signal?.throwIfAborted();
      if (isRemoved) await this.#migrateAll(fact, source);
      const args = {
        own: source,
        isRemoved: isRemoved ? 1 : 0,
        epoch: fact.epoch,
        after,
        letter,
        fenced: fenced.join("\n"),
        limit: PAGE,
        maxBytes: PAGE_BYTES,
        into: Math.max(0, source) % fact.to,
        buckets: Buffer.from(tableOf(fact.to)),
        timeout: FOREIGN_TIMEOUT,
      };
      const { queue } = this.#parts.at(source);
      const options = { ...this.#call, knownFact: formatFact(fact) };
      const page = await queue.read("migrate messages from", drainPage, args, options);
      await this.#routing.migration.deliver(fact, source, page satisfies Batch);
      ({ after, letter } = page);
      const left = isRemoved ? sum(page.left) : 0;
      this.#note(page.isOld ? 0 : page.rows.length, left);
      if (page.rows.length > 0 || page.isMore) continue;
      if (left > 0 && mayWait) {
        await pause.wait();
        continue;
      }
      if (isRemoved && left === 0) {
        await this.#routing.migration.migrateOnce(fact, source, this.#call);
      }
      return;
    }
  }

  async #replace(fact: Fact, next: Fact): Promise<void> {
    const { first } = this.#parts;
    const { notice } = this.#parts.following;
    const args = { expected: formatDone(fact), fact: formatFact(next), notice };
    this.#learn(await first.queue.read("change the partitions of", changeFact, args, this.#call));
  }

  #learn(found: string): void {
    if (parseFact(found) === undefined) {
      throw new TypeError(
        `queue "${this.#parts.name}" has a malformed record of its partitions: "${found}"`,
      );
    }
    this.#parts.following.learn(found);
  }

  #note(moved: number, left: number): void {
    this.#moved += moved;
    if (moved > 0 || left > 0) this.#onProgress({ moved: this.#moved, left });
  }
}

function sum({ delayed, ready, inFlight, dead, quarantined, retrying }: Left): number {
  return delayed + ready + inFlight + dead + quarantined + retrying;
}

/** A partition is not where this change has brought it: another process has ended the change, or Redis went back. */
class WentBack extends Error {}

/** The cursor after the delayed messages of a partition, before its retries; see `pullOutPage`. */
const RETRIES = Buffer.from("r");

/** Messages and bytes that one script takes out at most, so that it occupies Redis for about a millisecond. */
const PAGE = 100;
const PAGE_BYTES = 262_144;

/** Milliseconds of silence after which a consumer counts as dead if its name carries no lease timeout. */
const FOREIGN_TIMEOUT = 30_000;

/** The lease of a change on a partition. */
interface ChangeLease {
  readonly fence: number;
  /** The consumers of earlier holders, as `hold` returned them. */
  readonly fenced: readonly string[];
}

/** The process that a change takes leases as. It is the same in every process that works on the change. */
function changeHolder({ epoch }: Fact): string {
  return `change:${epoch}`;
}

/**
 * Takes the lease on a partition for a change, once the handler that runs there has ended or its lease is over, and
 * kills the connections of holders that did not release it.
 *
 * Nothing has to renew this lease: until the change has ended, Redis refuses every consumer that asks for one, since it
 * knows less than the fact, and consumers that know the fact ask for none.
 */
async function takeForChange(
  { queue }: Part,
  fact: Fact,
  signal: AbortSignal | undefined,
): Promise<ChangeLease> {
  const pause = new Pause(20, 200);
  const options = { signal, knownFact: formatFact(fact) };
  for (;;) {
    signal?.throwIfAborted();
    const sentAt = queueTime.now();
    const own = { process: changeHolder(fact), duration: DURATION, group: "" };
    const args = { ...own, past: queue.clock.past ?? "" };
    const reply = await queue.read("take the lease on", hold, args, options);
    queue.clock.observe(reply.serverTime, sentAt);
    if (reply.isOurs) {
      try {
        for (const connection of reply.stale) {
          await endConnection(queue.server.connections, queue.keys.ready, connection);
        }
      } catch (error) {
        throw new RedisError(`cannot end a connection that reads "${queue.name}"`, error);
      }
      return { fence: reply.fence, fenced: reply.orphans };
    }
    await pause.wait();
  }
}

/**
 * Calls `act` for each item, four at a time. After a failure no further call is started, and the promise rejects once
 * those under way have settled.
 */
async function fewAtOnce<Item>(
  items: readonly Item[],
  act: (item: Item) => Promise<void>,
): Promise<void> {
  const left = items.values();
  let hasFailed = false;
  const work = async () => {
    for (const item of left) {
      if (hasFailed) return;
      try {
        await act(item);
      } catch (error) {
        hasFailed = true;
        throw error;
      }
    }
  };
  const workers = await Promise.allSettled(Array.from({ length: AT_ONCE }, work));
  const failed = workers.find((worker) => worker.status === "rejected");
  if (failed !== undefined) throw failed.reason;
}

const AT_ONCE = 4;
