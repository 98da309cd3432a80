import { RedisError } from "../../errors.ts";
import { heldFact } from "../../lua/guarded.ts";
import { hold, noteHold, releaseHold, renewHold } from "../../lua/partitions/hold.ts";
import { inherit, type Inheritance } from "../../lua/partitions/inherit.ts";
import type { Membership } from "../../reliable/group/consumer-name.ts";
import type { Arguments, Row, Script } from "../../lua/script.ts";
import type { QueueKeys } from "../../queue/keys.ts";
import type { Connections } from "../../redis/connections.ts";
import type { Work } from "../../redis/troubles.ts";
import { Task } from "../../run/task.ts";
import { DeadlineTimer } from "../../time/deadline-timer.ts";
import { PAST } from "../../time/server-clock.ts";
import { Pause } from "../../time/pause.ts";
import type { Part } from "../parts/part.ts";
import { presenceTime, queueTime } from "../../time/runtime.ts";

/** A partition to take the lease on, and the process that takes it. */
export interface Claim {
  readonly part: Part;
  /** The process's name among the members. */
  readonly process: string;
  /** The consumer group, in a reliable queue. */
  readonly group?: string | undefined;
  /** The latest fact that this process knows. Redis refuses a lease to a process that knows less than Redis does. */
  readonly knownFact: () => string | undefined;
  /** Health of the renewals. */
  readonly work: Work;
}

/**
 * The lease of this process on a partition that it consumes exclusively. No other process takes from the partition
 * while it lasts.
 *
 * It is renewed until it is released. It is over once no renewal has succeeded for so long that another process may
 * have taken it, or once Redis replies that another process has it. This process measures that time on its own
 * monotonic clock, from the moment when it sent the last successful renewal, so its lease is over here before it is
 * over in Redis. Redis cannot stop a handler that still runs after its process was paused for longer. {@link signal} is
 * aborted for such a handler, and its fence is out of date.
 */
export class Lease {
  /** Greater than each fence before: the server's time in microseconds, or the last fence plus 1 if that is greater. */
  readonly fence: number;
  readonly #claim: Claim;
  /** The consumers of predecessors, as `hold` returned them. */
  readonly #orphans: readonly string[];
  readonly #over = new AbortController();
  readonly #ending = new DeadlineTimer(() => this.lose(NOT_RENEWED), presenceTime);
  readonly #renewals: Task;
  /** In the time of presence. */
  #endsAt = -Infinity;

  private constructor(
    claim: Claim,
    { fence, orphans }: { readonly fence: number; readonly orphans: readonly string[] },
    sentAt: number,
  ) {
    this.#claim = claim;
    this.fence = fence;
    this.#orphans = orphans;
    this.#renewals = new Task(
      () => this.#renew(),
      `cannot renew the lease on partition "${claim.part.queue.name}"`,
      claim.work,
      new Pause(RETRY, RETRY),
      () => !this.#over.signal.aborted,
      {},
    );
    this.#renewals.start(this.#untilNext);
    this.#renewed(sentAt);
  }

  /**
   * Takes the lease, and kills the connections of earlier holders that did not release it: a blocked read carries no
   * fence, and would go on taking messages. If another process has the lease, returns the milliseconds until that lease may be
   * over.
   *
   * Rejects with errors of ioredis, and with an `Error` if the partition is consumed for another group.
   */
  static async take(claim: Claim): Promise<Lease | number> {
    const { queue } = claim.part;
    const [sentAt, asked] = [queueTime.now(), presenceTime.now()];
    const { process, group = "" } = claim;
    const args = { process, duration: DURATION, group, past: queue.clock.past ?? "" };
    const { background } = queue.server.connections;
    // The next attempt has to know what the clock showed before.
    queue.server.connections.followTime();
    const reply = await queue.run(background, hold, args, [], claim.knownFact());
    queue.clock.observe(reply.serverTime, sentAt);
    if (!reply.isOurs) {
      // A change of the number of partitions holds it for no group.
      if (reply.group === "" || reply.group === claim.group) return reply.wait;
      throw new Error(`it is consumed exclusively by the group "${reply.group}"`);
    }
    for (const connection of reply.stale) {
      await endConnection(queue.server.connections, queue.keys.ready, connection);
    }
    return new Lease(claim, reply, asked);
  }

  /** Aborted when the lease is over, with an error that says why. */
  get signal(): AbortSignal {
    return this.#over.signal;
  }

  /** Whether a handler may begin. */
  get isOurs(): boolean {
    return !this.#over.signal.aborted && presenceTime.now() < this.#endsAt - MARGIN;
  }

  /**
   * Notes in Redis the connection on which messages are taken. Must be called before the first take.
   *
   * @throws {Error} if the lease is over.
   */
  async note(id: number, name: string): Promise<void> {
    const isOurs = await this.#run(noteHold, { ...this.#own, connection: `${id} ${name}` });
    if (!isOurs) this.lose("another process has taken it");
    this.#over.signal.throwIfAborted();
  }

  /**
   * Passes the deliveries that predecessors left in flight to this process's consumer. They have to be handled first.
   */
  async inherit({ group, consumer }: Membership, maxAttempts: number): Promise<Inheritance> {
    const rows = this.#orphans.map((orphan) => ({
      orphan: orphan.replace(/^=/, ""),
      counted: orphan.startsWith("=") ? 0 : 1,
    }));
    const args = { ...this.#own, group, consumer, maxAttempts, limit: MAX_INHERITED };
    const inherited = await this.#run(inherit, args, rows).catch((error: unknown) => {
      throw new RedisError(`cannot take from partition "${this.#claim.part.queue.name}"`, error);
    });
    if (!inherited.isOurs) this.lose("another process has taken it");
    return inherited;
  }

  /** Ends the lease here, and aborts {@link signal}. */
  lose(why: string): void {
    void this.#stop();
    const { name } = this.#claim.part.queue;
    this.#over.abort(new Error(`the lease on partition "${name}" is over: ${why}`));
  }

  /**
   * Releases the lease, so that another process can take it at once. By then no handler may run, and the connection
   * that takes must be closed. Never rejects.
   */
  async release(): Promise<void> {
    await this.#stop();
    // If this fails the lease expires soon.
    await this.#run(releaseHold, this.#own).catch(() => {});
  }

  get #own(): { readonly process: string; readonly fence: number } {
    return { process: this.#claim.process, fence: this.fence };
  }

  async #stop(): Promise<void> {
    this.#ending.clear();
    await this.#renewals.stop();
  }

  #run<Key extends keyof QueueKeys, Arg extends string, Reply, Column extends string = never>(
    script: Script<Key, Arg, Reply, Column>,
    args: Arguments<Arg>,
    rows?: readonly Row<Column>[],
  ): Promise<Reply> {
    const { queue } = this.#claim.part;
    return queue.run(queue.server.connections.background, script, args, rows);
  }

  /** Milliseconds until the next renewal: at the same instant as those of the other leases. */
  get #untilNext(): number {
    return this.#claim.part.queue.server.steps.until(INTERVAL);
  }

  /** Returns the milliseconds until the next renewal. */
  async #renew(): Promise<number> {
    const { part, knownFact } = this.#claim;
    const { background } = part.queue.server.connections;
    const [asked, sentAt] = [queueTime.now(), presenceTime.now()];
    const args = { ...this.#own, duration: DURATION };
    let serverTime: number | undefined;
    try {
      serverTime = await part.queue.runTogether(background, renewHold, args, knownFact());
    } catch (error) {
      // If the number of partitions has changed this process knows it now, and ends the lease after its handler.
      if (heldFact(error) === undefined) throw error;
      return RETRY;
    }
    if (serverTime === undefined) this.lose("another process has taken it");
    // A lease that was over stays over: messages that were not handed out in between would follow later ones.
    else if (!this.isOurs) this.lose(NOT_RENEWED);
    else if (!this.#renewals.isStopped) this.#renewed(sentAt);
    // Makes this process notice when the clock is set; see `hold`.
    if (serverTime !== undefined) part.queue.clock.observe(serverTime, asked);
    return this.#untilNext;
  }

  /** The lease lasts from `sentAt` on. */
  #renewed(sentAt: number): void {
    this.#endsAt = sentAt + DURATION;
    this.#ending.reset(this.#endsAt - MARGIN, this.#renewals);
  }
}

/** Milliseconds for which a lease lasts unless it is renewed. See `hold`. */
export const DURATION = PAST;

const NOT_RENEWED = "it was not renewed in time";

/** Milliseconds between two renewals. Those of all leases on a server are one command. */
const INTERVAL = 800;

/** Milliseconds until a failed renewal is tried again. */
const RETRY = 200;

/** Milliseconds by which a lease is over here before another process may take it. */
const MARGIN = 100;

/** More entries than a holder leaves in flight; see {@link Aside}. */
const MAX_INHERITED = 1000;

/**
 * Kills the connection of a process that lost a partition without releasing it, on the server of `key`. `connection` is
 * the id and the name of the connection, separated by a space.
 *
 * A restarted server assigns the same ids again, so a connection with another name is left alone.
 *
 * Rejects with errors of ioredis.
 */
export async function endConnection(
  connections: Connections,
  key: string,
  connection: string,
): Promise<void> {
  const [, id, name] = /^(\d+) (\S+)$/.exec(connection) ?? [];
  if (id === undefined) return;
  const redis = await connections.nodeOf(key);
  const list = String(await redis.call("CLIENT", "LIST", "ID", id));
  if (!list.split(/\s/).includes(`name=${name}`)) return;
  await redis.call("CLIENT", "KILL", "ID", id);
}
