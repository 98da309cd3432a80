import { RedisError } from "../../errors.ts";
import { hold, noteHold, releaseHold, renewHold } from "../../lua/partitions/hold.ts";
import { popHeld } from "../../lua/partitions/pop-held.ts";
import { inherit, type Inheritance } from "../../lua/partitions/inherit.ts";
import type { Membership } from "../../reliable/group/consumer-name.ts";
import type { Row, Script, ScriptArg } from "../../lua/script.ts";
import type { QueueKeys } from "../../queue/keys.ts";
import type { Work } from "../../redis/troubles.ts";
import { DeadlineTimer } from "../../time/deadline-timer.ts";
import type { Part } from "../parts/part.ts";
import { endConnection } from "./predecessor.ts";

/** Who takes a lease. */
export interface Claim {
  readonly part: Part;
  /** The process's name among the members. */
  readonly process: string;
  /** Of a reliable queue. */
  readonly group?: string | undefined;
  /** How the renewals get on. */
  readonly work: Work;
}

/**
 * The lease of this process on a partition that it consumes exclusively. Nobody else takes from the partition while it
 * lasts.
 *
 * It is renewed until it is released. It is over when Redis has not renewed it for so long that another process may have
 * taken it, or has said that one has. This process judges that by its own monotonic clock, from the moment when it sent
 * the last renewal, so it knows before anybody else can act. What Redis cannot know is that a handler runs on in a
 * process that was paused for longer: it is told by {@link signal}, and the fence tells whoever it writes to.
 */
export class Lease {
  /** Grows by one each time another process takes the lease of this partition. */
  readonly fence: number;
  readonly #claim: Claim;
  /** The consumers of predecessors, as they are noted. */
  readonly #orphans: readonly string[];
  readonly #over = new AbortController();
  readonly #ending = new DeadlineTimer(() => this.lose("it was not renewed in time"));
  #endsAt: number;
  #timer: NodeJS.Timeout | undefined;
  #isReleased = false;
  #renewing: Promise<void> | undefined;

  private constructor(
    claim: Claim,
    { fence, orphans }: { readonly fence: number; readonly orphans: readonly string[] },
    sentAt: number,
  ) {
    this.#claim = claim;
    this.fence = fence;
    this.#orphans = orphans;
    this.#endsAt = sentAt + DURATION;
    this.#ending.reset(this.#endsAt - MARGIN);
    this.#timer = setTimeout(() => this.#renew(), INTERVAL);
  }

  /**
   * Takes the lease, and ends the connections of those who had it before and did not release it: a block carries no
   * fence, and would go on to swallow messages. Returns after how many milliseconds it may be free if another process has
   * it.
   *
   * Rejects with what ioredis rejects with.
   */
  static async take(claim: Claim): Promise<Lease | number> {
    const { queue, server } = claim.part;
    const sentAt = performance.now();
    const args = { process: claim.process, duration: DURATION, group: claim.group ?? "" };
    const held = await queue.run(server.connections.background, hold, args);
    if (!held.isOurs) {
      if (held.group === (claim.group ?? "")) return held.wait;
      throw new Error(`it is consumed exclusively by the group "${held.group}"`);
    }
    for (const connection of held.stale) {
      await endConnection(server.connections, queue.keys.ready, connection);
    }
    return new Lease(claim, held, sentAt);
  }

  /** Aborted when it is over, with an error that says so. */
  get signal(): AbortSignal {
    return this.#over.signal;
  }

  /** Whether a handler may begin. */
  get isOurs(): boolean {
    return !this.#over.signal.aborted && performance.now() < this.#endsAt - MARGIN;
  }

  /**
   * Notes the connection on which messages are taken, before any is.
   *
   * @throws {Error} if the lease is over.
   */
  async note(id: number, name: string): Promise<void> {
    const isOurs = await this.#run(noteHold, { ...this.#own, connection: `${id} ${name}` });
    if (!isOurs) this.lose("another process has taken it");
    this.#over.signal.throwIfAborted();
  }

  /**
   * Takes a ready message, checked against the fence; if there is none, says that nothing is in hand for the fact with this epoch.
   */
  async pop(epoch: number): Promise<Buffer | undefined> {
    const popping = this.#run(popHeld, { ...this.#own, epoch });
    const { isOurs, payload } = await this.#told("take from", popping);
    if (!isOurs) this.lose("another process has taken it");
    return payload;
  }

  /** What is in flight for predecessors, and for this process's consumer from now on; it is to be handled first. */
  async inherit({ group, consumer }: Membership, maxDeliveries: number): Promise<Inheritance> {
    const rows = this.#orphans.map((orphan) => ({
      orphan: orphan.replace(/^=/, ""),
      counted: orphan.startsWith("=") ? 0 : 1,
    }));
    const args = { ...this.#own, group, consumer, maxDeliveries, limit: MAX_INHERITED };
    const inherited = await this.#told("take from", this.#run(inherit, args, rows));
    if (!inherited.isOurs) this.lose("another process has taken it");
    return inherited;
  }

  /** It is over. */
  lose(why: string): void {
    this.#stop();
    const { name } = this.#claim.part.queue;
    this.#over.abort(new Error(`the lease on partition "${name}" is over: ${why}`));
  }

  /** Lets others take it at once; nothing may be in hand, and no connection open. Never rejects. */
  async release(): Promise<void> {
    this.#stop();
    this.#isReleased = true;
    await this.#renewing;
    // If that fails it is over soon.
    await this.#run(releaseHold, this.#own).catch(() => {});
  }

  get #own(): { readonly process: string; readonly fence: number } {
    return { process: this.#claim.process, fence: this.fence };
  }

  #stop(): void {
    clearTimeout(this.#timer);
    this.#ending.clear();
  }

  #run<Key extends keyof QueueKeys, Arg extends string, Reply, Column extends string = never>(
    script: Script<Key, Arg, Reply, Column>,
    args: Readonly<Record<Arg, ScriptArg>>,
    rows?: readonly Row<Column>[],
  ): Promise<Reply> {
    const { queue, server } = this.#claim.part;
    return queue.run(server.connections.background, script, args, rows);
  }

  /** What Redis replies, or an error without the arguments of the command. */
  async #told<Reply>(doing: string, reply: Promise<Reply>): Promise<Reply> {
    try {
      return await reply;
    } catch (error) {
      throw new RedisError(`cannot ${doing} partition "${this.#claim.part.queue.name}"`, error);
    }
  }

  #renew(): void {
    this.#renewing = this.#tryRenew().finally(() => (this.#renewing = undefined));
  }

  async #tryRenew(): Promise<void> {
    const sentAt = performance.now();
    let next = INTERVAL;
    try {
      const isOurs = await this.#run(renewHold, { ...this.#own, duration: DURATION });
      this.#claim.work.succeeded();
      if (!isOurs) this.lose("another process has taken it");
      else if (!this.#isEnded) {
        this.#endsAt = sentAt + DURATION;
        this.#ending.reset(this.#endsAt - MARGIN);
      }
    } catch (error) {
      const { name } = this.#claim.part.queue;
      this.#claim.work.failed(
        new RedisError(`cannot renew the lease on partition "${name}"`, error),
      );
      next = RETRY;
    }
    if (!this.#isEnded) this.#timer = setTimeout(() => this.#renew(), next);
  }

  get #isEnded(): boolean {
    return this.#isReleased || this.#over.signal.aborted;
  }
}

/** Milliseconds that a lease lasts if it is not renewed. */
const DURATION = 2500;

/** Milliseconds between two renewals. */
const INTERVAL = 800;

/** Milliseconds until a renewal is tried again that has failed. */
const RETRY = 200;

/** So many milliseconds before others may take it a lease counts as over. */
const MARGIN = 100;

/** Entries that one holder has in flight at most: one in hand, and what a reply brought that was lost. */
const MAX_INHERITED = 100;
