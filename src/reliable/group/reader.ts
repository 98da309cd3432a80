import { RedisError } from "../../errors.ts";
import { isPassing } from "../../failure.ts";
import type { Pauses } from "../../queue/pause-watch.ts";
import type { Queue } from "../../queue/queue.ts";
import { Waiters, type WaitOptions } from "../../queue/consuming/waiters.ts";
import type { OnConnected } from "../../redis/blocking-client.ts";
import type { Connections } from "../../redis/connections.ts";
import type { Troubles, Work } from "../../redis/troubles.ts";
import { Unblocking } from "../../redis/unblocking.ts";
import { Pause } from "../../time/pause.ts";
import type { Held } from "./held.ts";
import type { InHand } from "./in-hand.ts";
import type { Membership } from "./settlements.ts";
import { ReadSize } from "./read-size.ts";
import { StreamConnection, type Read } from "./stream-connection.ts";
import { Suspects } from "./suspects.ts";

/** Who has the deliveries that are read. */
export interface ReaderHost {
  readonly inHand: InHand;
  /** Makes the group, which somebody has destroyed, again. */
  readonly remakeGroup: () => Promise<void>;
  /** Looks for entries that a reply has brought which was lost: no read is under way. */
  readonly checkStrangers: () => Promise<void>;
  /** Lets a delivery go that nobody was given. Never rejects. */
  readonly release: (held: Held) => Promise<void>;
  /** Acknowledges an entry that is not for us. Never rejects. */
  readonly skip: (entryId: string) => Promise<void>;
  /** Keeps an entry that is none of ours. Never rejects. */
  readonly setAside: (entryId: string, fields: readonly Buffer[]) => Promise<void>;
  /** Is told of each connection before anything is read on it. */
  readonly onConnected: OnConnected | undefined;
}

/**
 * Reads a group's messages for all who wait for them in this process, over one connection.
 *
 * It never reads more than is waited for, so no message lies in a process that is busy. When the last waiter leaves,
 * the block is ended with CLIENT UNBLOCK from another connection, and its reply is awaited; what it brings for nobody
 * goes back.
 *
 * A message whose consumers have died twice is one of the {@link Suspects}. It is handed out when nothing else is in
 * hand, and nothing else is read until it is settled.
 *
 * The reader is always in one of these modes:
 *
 * - **idle**: nobody waits, and nothing is under way. A connection stays open.
 * - **gathering**: the current turn of the event loop ends first, so that all who start to wait in it are served
 *   together. Each step begins and ends here.
 * - **connecting**: it is being asked whether the queue is paused, or a connection is being opened.
 * - **resting**: the queue is paused, or a suspect is in hand, or waits until nothing else is. Whoever waits goes on
 *   waiting. When that changes, or nobody waits any more: *gathering*.
 * - **reading**: a read is under way, and somebody waits for it.
 * - **unblocking**: the read is in vain, and is being ended. Its reply still comes, and ends this mode.
 * - **recovering**: a step has failed. If Redis refuses for good, all who wait are told. Otherwise the failure is
 *   reported, the connection is given up, and a growing pause follows.
 */
export class Reader {
  readonly #queue: Queue;
  readonly #member: Membership;
  readonly #connections: Connections;
  readonly #pauses: Pauses;
  readonly #host: ReaderHost;
  readonly #reads: Work;
  readonly #unblocking: Unblocking;
  readonly #waiters: Waiters<Held>;
  readonly #pause = new Pause(100, 500);

  /** When the read that is under way was sent (`performance.now()`); Infinity if there is none. */
  readingSince = Infinity;
  #mode: Mode = "idle";
  #connection: StreamConnection | undefined;
  #hasLostConnection = false;
  readonly #suspects: Suspects;
  readonly #size = new ReadSize();
  /** Ends the mode *resting*. */
  #wake = () => {};
  readonly #unlisten: () => void;
  /** All that happens between idle and idle. */
  #working: Promise<void> | undefined;

  constructor(
    queue: Queue,
    member: Membership,
    host: ReaderHost,
    shared: {
      readonly connections: Connections;
      readonly pauses: Pauses;
      readonly troubles: Troubles;
    },
  ) {
    this.#queue = queue;
    this.#member = member;
    this.#connections = shared.connections;
    this.#pauses = shared.pauses;
    this.#host = host;
    this.#reads = shared.troubles.work();
    this.#unblocking = new Unblocking(this.#name, shared.troubles.work());
    this.#waiters = new Waiters(this.#name, {
      isConnected: () => this.#openConnection !== undefined || this.#mode === "resting",
      onChange: () => this.onChange(),
    });
    this.#suspects = new Suspects(host.inHand);
    this.#unlisten = this.#pauses.onChange(() => this.onChange());
  }

  /**
   * Waits for messages as {@link Waiters.wait} does.
   *
   * @throws {RedisError} also if Redis refuses the read (WRONGTYPE, NOPERM). A lost connection does not reject: it
   * is reported, and the wait goes on.
   */
  wait(max: number, options: WaitOptions): Promise<readonly Held[]> {
    return this.#waiters.wait(max, options);
  }

  /** Ends every wait with a `ClosedError`; resolves when nothing that it has read is left with it. */
  async close(): Promise<void> {
    this.#unlisten();
    this.#waiters.close();
    this.#pause.end();
    await this.#working;
    await this.#unblocking.close();
    this.#reads.ended();
    this.#connection?.disconnect();
  }

  /** Somebody has started to wait, or has left; a delivery was settled; or the queue was paused or resumed. */
  onChange(): void {
    if (this.#mode === "idle" && this.#waiters.areThere) {
      this.#working = this.#work();
    } else if (this.#mode === "reading") {
      const isInVain = this.#waiters.waitingCount === 0 || this.#pauses.isPaused !== false;
      if (isInVain) this.#enter("unblocking");
    } else if (this.#mode === "resting") {
      // No reply is under way that could bring them a message.
      this.#waiters.dismissExpired();
      if (!this.#mustRest || !this.#waiters.areThere) this.#wake();
    }
    // Also if it was unblocking before: the last attempt may have failed.
    if (this.#mode !== "unblocking") return;
    this.#unblocking.start(
      () => this.#connection?.unblock(),
      () => this.#mode === "unblocking",
    );
  }

  /** Sets the mode. Nothing else does. */
  #enter(mode: Mode): void {
    this.#mode = mode;
  }

  get #name(): string {
    return `queue "${this.#queue.name}"`;
  }

  get #openConnection(): StreamConnection | undefined {
    return this.#connection?.isLost === false ? this.#connection : undefined;
  }

  get #mustRest(): boolean {
    return this.#pauses.isPaused !== false || this.#suspects.mustRest;
  }

  async #work(): Promise<void> {
    this.#enter("gathering");
    for (;;) {
      // After the promises that the last step has settled: who waits again at once is served, too.
      await new Promise<void>((resolve) => process.nextTick(resolve));
      if (!this.#waiters.areThere) {
        const suspect = this.#suspects.takeOut();
        if (suspect === undefined) break;
        // Others may take it.
        await this.#host.release(suspect);
        continue;
      }
      try {
        await this.#step();
      } catch (error) {
        await this.#recover(error);
      }
      this.#enter("gathering");
    }
    this.#enter("idle");
    this.#reads.stopped();
    this.#waiters.dismissExpired();
  }

  async #step(): Promise<void> {
    const connection = this.#openConnection;
    if (this.#pauses.isPaused === undefined) {
      this.#enter("connecting");
      await this.#pauses.known();
      return;
    }
    if (this.#mustRest) {
      await this.#rest();
      return;
    }
    const suspect = this.#suspects.handOut();
    if (suspect !== undefined) {
      await this.#give([suspect]);
    } else if (connection === undefined) {
      await this.#connect();
    } else {
      await this.#read(connection);
      this.#reads.succeeded();
      this.#pause.reset();
    }
  }

  async #rest(): Promise<void> {
    this.#enter("resting");
    // Those whose time is over already get none.
    this.#waiters.expireUnserved();
    this.#waiters.dismissExpired();
    if (!this.#waiters.areThere) return;
    await new Promise<void>((resolve) => (this.#wake = resolve));
  }

  async #connect(): Promise<void> {
    this.#enter("connecting");
    const { stream } = this.#queue.keys;
    this.#connection = await StreamConnection.open(
      this.#connections,
      stream,
      this.#member,
      this.#host.onConnected,
    );
    // A reply may have been lost with the last one.
    if (this.#hasLostConnection) await this.#host.checkStrangers();
    this.#hasLostConnection = true;
  }

  async #read(connection: StreamConnection): Promise<void> {
    const isLate = this.#waiters.unservedCount > 0;
    const wanted = isLate
      ? this.#waiters.expireUnserved()
      : this.#waiters.wanted.reduce((sum, count) => sum + count, 0);
    this.#enter("reading");
    const most = Math.min(this.#size.count, this.#suspects.readable);
    this.readingSince = performance.now();
    const reading = connection.read(Math.min(wanted, most), !isLate);
    // Who was to be served may have left since.
    if (!isLate) this.onChange();
    await this.#give(this.#accept(await reading));
  }

  /** Takes what was read into the hand; returns what is to be handed out now. */
  #accept(read: readonly Read[]): Held[] {
    const taken: Held[] = [];
    for (const entry of read) {
      if ("fields" in entry) void this.#host.setAside(entry.entryId, entry.fields);
      else if (entry.group !== undefined && entry.group !== this.#member.group) {
        void this.#host.skip(entry.entryId);
      } else taken.push(this.#host.inHand.add(entry));
    }
    this.readingSince = Infinity;
    this.#size.note(taken.map(({ entry }) => entry));
    const { fresh, others } = this.#suspects.sift(taken);
    for (const held of others) void this.#host.release(held);
    return fresh;
  }

  /** Gives messages to those who wait, and the others back. Nothing else is under way. */
  async #give(messages: readonly Held[]): Promise<void> {
    const left = this.#waiters.giveLast(messages);
    await Promise.all(left.map((held) => this.#host.release(held)));
  }

  async #recover(error: unknown): Promise<void> {
    this.#enter("recovering");
    this.readingSince = Infinity;
    this.#waiters.dismissExpired();
    const failure = new RedisError(`cannot take from ${this.#name}`, error);
    if (failure.reply === "NOGROUP") {
      try {
        await this.#host.remakeGroup();
      } catch (refusal) {
        this.#waiters.failAll(refusal);
      }
    } else if (!isPassing(failure.reply)) {
      this.#waiters.failAll(failure);
    } else if (!this.#waiters.isClosed) {
      this.#reads.failed(failure);
      this.#waiters.failUnserved(failure);
      this.#connection?.disconnect();
      this.#connection = undefined;
      await this.#pause.wait();
    }
  }
}

/** The modes of a reader; its docstring says what they mean. */
type Mode =
  "idle" | "gathering" | "connecting" | "resting" | "reading" | "unblocking" | "recovering";
