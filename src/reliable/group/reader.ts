import { RedisError } from "../../errors.ts";
import { isPassing, isStreamDeleted } from "../../failure.ts";
import type { Pauses } from "../../queue/pause-watch.ts";
import type { Queue } from "../../queue/queue.ts";
import { Waiters, type WaitOptions } from "../../run/waiters.ts";
import type { OnConnected } from "../../redis/blocking-client.ts";
import type { Work } from "../../redis/troubles.ts";
import { Unblocking } from "../../redis/unblocking.ts";
import { Pause } from "../../time/pause.ts";
import type { Membership } from "./consumer-name.ts";
import type { Held } from "./held.ts";
import type { HeldDeliveries } from "./held-deliveries.ts";
import type { Intake } from "./intake.ts";
import { ReadSize } from "./read-size.ts";
import { StreamConnection } from "./stream-connection.ts";
import { Suspects } from "./suspects.ts";

/** The part of a group that its reader uses. */
export interface ReaderHost {
  readonly held: HeldDeliveries;
  readonly intake: Intake;
  /** Creates the group again after somebody destroyed it. */
  readonly remakeGroup: () => Promise<void>;
  /** Gives back entries whose reply was lost. No read may be under way. */
  readonly checkStrangers: () => Promise<void>;
  /** Gives a delivery that no waiter got back to the group. Never rejects. */
  readonly release: (held: Held) => Promise<void>;
  /** Called with each new connection before anything is read on it. */
  readonly onConnected: OnConnected | undefined;
}

/**
 * Reads a group's messages for all waiters of this process, over one connection.
 *
 * While somebody waits, it sends one XREADGROUP after another. A read asks for no more messages than its waiters want,
 * so no message sits in a busy process. When the last waiter leaves, the reader ends the block with CLIENT UNBLOCK from
 * another connection and awaits the reply. Messages that no waiter takes are returned to the group.
 *
 * A message that may kill its process is handed out alone; see {@link Suspects}.
 *
 * The reader is always in one of these modes:
 *
 * - **idle**: nobody waits, and nothing is under way. The connection stays open.
 * - **gathering**: it lets the current turn of the event loop end, so that all calls made in it are served together.
 *   Every step begins and ends here.
 * - **connecting**: it asks whether the queue is paused, or opens a connection.
 * - **resting**: the queue is paused, or a suspect is handed out, or waits until nothing else is held. The waiters
 *   stay. The mode ends when that changes, or when nobody waits.
 * - **reading**: a read is under way, and somebody waits for it.
 * - **unblocking**: nobody needs the read that is under way, and it is being ended. Its reply ends this mode.
 * - **recovering**: a step has failed. If Redis refused for good, every waiter is rejected. Otherwise the reader
 *   reports the failure, drops the connection and pauses, longer each time.
 */
export class Reader {
  readonly #queue: Queue;
  readonly #member: Membership;
  readonly #pauses: Pauses;
  readonly #host: ReaderHost;
  readonly #reads: Work;
  readonly #unblocking: Unblocking;
  readonly #waiters: Waiters<Held>;
  readonly #pause = new Pause(100, 500);

  /** When the read that is under way was sent (`performance.now()`); Infinity if none is. */
  readingSince = Infinity;
  #mode: Mode = "idle";
  #connection: StreamConnection | undefined;
  #hasLostConnection = false;
  readonly #suspects: Suspects;
  readonly #size = new ReadSize();
  /** Ends *resting*. */
  #wake = () => {};
  readonly #unlisten: () => void;
  /** Resolves when the reader is *idle* again. */
  #working: Promise<void> | undefined;

  constructor(queue: Queue, member: Membership, pauses: Pauses, host: ReaderHost) {
    this.#queue = queue;
    this.#member = member;
    this.#pauses = pauses;
    this.#host = host;
    const { troubles } = queue.server;
    this.#reads = troubles.work();
    this.#unblocking = new Unblocking(this.#name, troubles.work());
    this.#waiters = new Waiters(this.#name, {
      isConnected: () => this.#openConnection !== undefined || this.#mode === "resting",
      onChange: () => this.onChange(),
    });
    this.#suspects = new Suspects(host.held);
    this.#unlisten = this.#pauses.onChange(() => this.onChange());
  }

  /**
   * Waits for messages as {@link Waiters.wait} does.
   *
   * @throws {RedisError} also if Redis refuses the read (WRONGTYPE, NOPERM). A lost connection is only reported, and
   * the wait goes on.
   */
  wait(max: number, options: WaitOptions): Promise<readonly Held[]> {
    return this.#waiters.wait(max, options);
  }

  /** Ends every wait with a `ClosedError`; resolves when the messages left over have been returned. */
  async close(): Promise<void> {
    this.#unlisten();
    this.#waiters.close();
    this.#pause.end();
    await this.#working;
    await this.#unblocking.close();
    this.#reads.ended();
    this.#connection?.disconnect();
  }

  /** Called when a wait begins or ends, a delivery is no longer held, or the queue is paused or resumed. */
  onChange(): void {
    if (this.#mode === "idle" && this.#waiters.areThere) {
      this.#working = this.#work();
    } else if (this.#mode === "reading") {
      const isInVain = this.#waiters.waitingCount === 0 || this.#pauses.isPaused !== false;
      if (isInVain) this.#enter("unblocking");
    } else if (this.#mode === "resting") {
      // No reply is under way that could serve the expired waiters.
      this.#waiters.dismissExpired();
      if (!this.#mustRest || !this.#waiters.areThere) this.#wake();
    }
    // Also if the mode was *unblocking* before: the last attempt may have failed.
    if (this.#mode !== "unblocking") return;
    this.#unblocking.start(
      () => this.#connection?.unblock(),
      () => this.#mode === "unblocking",
    );
  }

  /** The only place that sets the mode. */
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
      // Run after the callbacks of promises that the last step has settled: a caller that takes again at once is served
      // by this step.
      await new Promise<void>((resolve) => process.nextTick(resolve));
      if (!this.#waiters.areThere) {
        const suspect = this.#suspects.takeOut();
        if (suspect === undefined) break;
        // Nobody waits here now. Another process may take it.
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
    // Waiters whose time is over get nothing.
    this.#waiters.expireUnserved();
    this.#waiters.dismissExpired();
    if (!this.#waiters.areThere) return;
    await new Promise<void>((resolve) => (this.#wake = resolve));
  }

  async #connect(): Promise<void> {
    this.#enter("connecting");
    const { stream } = this.#queue.keys;
    this.#connection = await StreamConnection.open(
      this.#queue.server.connections,
      stream,
      this.#member,
      this.#host.onConnected,
    );
    // A reply may have been lost with the last connection.
    if (this.#hasLostConnection) await this.#host.checkStrangers();
    this.#hasLostConnection = true;
  }

  async #read(connection: StreamConnection): Promise<void> {
    const isLate = this.#waiters.unservedCount > 0;
    const wanted = isLate
      ? this.#waiters.expireUnserved()
      : this.#waiters.wanted.reduce((sum, count) => sum + count, 0);
    this.#enter("reading");
    const most = Math.min(this.#size.count, this.#suspects.readLimit);
    this.readingSince = performance.now();
    const reading = connection.read(Math.min(wanted, most), !isLate);
    // The last waiter may have left before the mode was *reading*.
    if (!isLate) this.onChange();
    const taken = this.#host.intake.accept(await reading);
    this.readingSince = Infinity;
    this.#size.note(taken.map(({ entry }) => entry));
    const { fresh, surplus } = this.#suspects.sift(taken);
    for (const held of surplus) void this.#host.release(held);
    await this.#give(fresh);
  }

  /** Gives messages to the waiters, and returns the rest to the group. No read is under way. */
  async #give(messages: readonly Held[]): Promise<void> {
    const left = this.#waiters.giveLast(messages);
    await Promise.all(left.map((held) => this.#host.release(held)));
  }

  async #recover(error: unknown): Promise<void> {
    this.#enter("recovering");
    this.readingSince = Infinity;
    this.#waiters.dismissExpired();
    const failure = new RedisError(`cannot take from ${this.#name}`, error);
    if (isStreamDeleted(error)) {
      // If the partition was removed, this reader is closed during the pause. Otherwise the next read gets NOGROUP.
      await this.#pause.wait();
    } else if (failure.reply === "NOGROUP") {
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

/** The modes of a {@link Reader}; its docstring describes them. */
type Mode =
  "idle" | "gathering" | "connecting" | "resting" | "reading" | "unblocking" | "recovering";
