import { checkFollows } from "./modes.ts";
import { RedisError } from "../errors.ts";
import { hadNoEffect, isPassing } from "../failure.ts";
import { BlockingClient, type OnConnected } from "../redis/blocking-client.ts";
import type { Server } from "../redis/server.ts";
import type { Work } from "../redis/troubles.ts";
import { Pause } from "../time/pause.ts";
import { Waiters } from "./waiters.ts";
import { nextTick } from "../time/runtime.ts";

/** What the owner of a {@link BlockingLoop} does in it. */
export interface LoopSteps<Message> {
  /** Who waits, in errors: `queue "orders"`. */
  readonly name: string;
  /** One step for those who wait: it calls one of the loop's methods for steps, which says what is under way. */
  readonly step: () => Promise<void>;
  /** Gives back unclaimed messages. Never rejects. */
  readonly giveBack: (messages: readonly Message[]) => Promise<unknown>;
  /** Called when the last waiter has left. If it returns a promise, the loop awaits it and looks again who waits. */
  readonly onLeft?: () => Promise<unknown> | undefined | void;
  /** Recovers from a failed step. Returns false to leave that to the loop. */
  readonly recover?: (error: unknown) => Promise<boolean>;
  /** Receives the outcomes of the steps that take. Defaults to a new one. */
  readonly work?: Work;
  /** The pause after a failure. Defaults to one that grows from 100 ms to half a second. */
  readonly pause?: Pause;
}

/**
 * Runs one step after another over one blocking connection, as long as there are waiters.
 *
 * The connection is opened when a step needs it, and stays open while there are no waiters. When a block is in vain, usually
 * because the last waiter has left, the loop ends it with CLIENT UNBLOCK from another connection and awaits the block's reply,
 * which either carries a message or says that there is none. Dropping the socket instead would lose the message in one race out of
 * three.
 *
 * The loop is always in exactly one mode:
 *
 * - **idle**: no waiters, and nothing under way. The connection stays open. The first waiter → *gathering*. `close` → *closed*.
 * - **gathering**: lets the current turn of the event loop finish, so that all calls of one turn are served together. Every step
 *   begins and ends here. No waiters → *idle*. Otherwise the step picks the next mode.
 * - **connecting**: a connection is being opened, or the step asks what it has to know before it can take. Done → *gathering*,
 *   because all waiters may have left by then.
 * - **resting**: nothing is sent to Redis. Waiters stay until their time is over.
 *   The reason is gone, or the last waiter leaves → *gathering*.
 * - **taking**: a command without a block is under way.
 *   Its reply → *gathering*, or → *giving back* if it carries more than the remaining waiters take.
 * - **blocking**: a block is under way, and waiters wait for it. Its reply → *gathering* or *giving back*. It is in vain →
 *   *unblocking*.
 * - **unblocking**: the block is in vain, and the loop is ending it.
 *   Its reply → *gathering* or *giving back*. It is no longer in vain → *blocking*.
 * - **giving back**: unclaimed messages are on their way back, however long that takes. Until then nothing is taken, since later
 *   messages would overtake these. Done → *gathering*.
 * - **recovering**: a step failed. If Redis refuses for good, every waiter is rejected. Otherwise the loop reports the
 *   failure, drops the connection and pauses, longer each time. Then → *gathering*.
 * - **closed**: the connection is closed. Nothing follows.
 *
 * *Closing* is not a mode: `close` rejects all waiters and admits no more, so the loop becomes idle by the same steps
 * as whenever the last waiter leaves.
 */
export class BlockingLoop<Message> {
  readonly waiters: Waiters<Message>;
  readonly #server: Pick<Server, "connections">;
  readonly #steps: LoopSteps<Message>;
  readonly #work: Work;
  readonly #unblocks: Work;
  readonly #pause: Pause;
  #mode: Mode = "idle";
  #client: BlockingClient | undefined;
  #isInVain = () => false;
  #mustRest = () => false;
  #endRest = () => {};
  /** Runs from leaving *idle* until *idle* again. */
  #running: Promise<void> | undefined;
  #stepping: Promise<void> | undefined;
  #unblocking: Promise<void> | undefined;

  constructor(server: Pick<Server, "connections" | "troubles">, steps: LoopSteps<Message>) {
    this.#server = server;
    this.#steps = steps;
    this.#work = steps.work ?? server.troubles.work();
    this.#unblocks = server.troubles.work();
    this.#pause = steps.pause ?? new Pause(100, 500);
    this.waiters = new Waiters(steps.name, {
      // A resting loop sends nothing, so no waiter has to wait for a connection.
      isConnected: () => this.client !== undefined || this.#mode === "resting",
      onChange: () => this.review(),
      explain: (error) => server.connections.explain(error),
    });
  }

  /** The connection, if it is open. */
  get client(): BlockingClient | undefined {
    return this.#client?.isLost === false ? this.#client : undefined;
  }

  /** To be called whenever something has changed that decides what to do: begins, ends a rest, or ends a block. */
  review(): void {
    if (this.#mode === "idle" && this.waiters.areThere) this.#running = this.#run();
    else if (this.#mode === "blocking" && this.#isInVain()) this.#enter("unblocking");
    else if (this.#mode === "unblocking" && !this.#isInVain()) this.#enter("blocking");
    else if (this.#mode === "resting") this.#reviewRest();
    // Also if the mode was unblocking already: the last attempt may have failed.
    if (this.#mode === "unblocking") this.#unblocking ??= this.#unblock();
  }

  /** A step: asks what has to be known before anything can be taken. */
  async prepare(ask: () => Promise<unknown>): Promise<void> {
    this.#enter("connecting");
    await ask();
  }

  /** A step: opens the connection; see {@link BlockingClient.open}. */
  open(key: string | undefined, onConnected?: OnConnected): Promise<void> {
    return this.prepare(async () => {
      this.#client = await BlockingClient.open(this.#server.connections, key, onConnected);
    });
  }

  /** A step: rests for as long as it must, or until the last waiter has left. */
  async rest(mustRest: () => boolean): Promise<void> {
    this.#enter("resting");
    this.#mustRest = mustRest;
    // Nothing will be sent for waiters whose time is over.
    this.waiters.expireUnserved();
    this.waiters.dismissExpired();
    if (this.waiters.areThere) await new Promise<void>((resolve) => (this.#endRest = resolve));
  }

  /** A step: takes by commands that do not block, and delivers. */
  async take(take: () => Promise<void>): Promise<void> {
    this.#enter("taking");
    await take();
    this.#succeeded();
  }

  /**
   * A step: sends a block, perhaps behind other commands, awaits its reply and delivers. The block is ended while it
   * `isInVain`: usually, while there are no waiters.
   */
  async block(take: () => Promise<void>, isInVain: () => boolean): Promise<void> {
    this.#enter("blocking");
    this.#isInVain = isInVain;
    await take();
    this.#succeeded();
  }

  /** Rejects every wait that is under way with `reason`. A message that arrives for one of them is given back. */
  dismiss(reason: Error): void {
    this.waiters.failAll(reason);
    this.review();
  }

  /** Delivers messages to the waiters and gives the rest back. No reply may be under way. */
  async deliver(messages: readonly Message[]): Promise<void> {
    const left = this.waiters.giveLast(messages);
    if (left.length > 0) {
      // Start before entering the mode, which may throw.
      const givingBack = this.#steps.giveBack(left);
      this.#enter("giving back");
      await givingBack;
    }
    this.#enter("gathering");
  }

  /** Resolves when the step that is under way has ended; at once while resting. */
  async stepped(): Promise<void> {
    if (this.#mode !== "resting") await this.#stepping?.catch(() => {});
  }

  /** Ends the connection. A reply that is still under way is lost. */
  disconnect(): void {
    this.#client?.disconnect();
    this.#client = undefined;
  }

  /** Rejects every wait with a `ClosedError`; resolves once nothing is under way. */
  async close(): Promise<void> {
    this.waiters.close();
    this.#pause.end();
    await this.#running;
    await this.#unblocking;
    this.#unblocks.ended();
    this.#work.ended();
    this.disconnect();
    if (this.#mode !== "closed") this.#enter("closed");
  }

  /**
   * Sets the mode. Nothing else does.
   *
   * In production an illegal one is a failed step like any other: the loop reports it and recovers. It must not cost a
   * message, so a mode is never entered while only the caller's variables hold messages.
   */
  #enter(mode: Mode): void {
    checkFollows<Mode>(NEXT, this.#mode, mode);
    this.#mode = mode;
  }

  async #run(): Promise<void> {
    this.#enter("gathering");
    for (;;) {
      // Run after the reactions to promises that the last step settled, so that a caller who waits again at once joins
      // the next step.
      await new Promise<void>((resolve) => nextTick(resolve));
      if (this.waiters.areThere) {
        try {
          await (this.#stepping = this.#steps.step());
        } catch (error) {
          await this.#recover(error);
        }
        this.#enter("gathering");
      } else {
        const leaving = this.#steps.onLeft?.();
        if (leaving === undefined) break;
        await leaving;
      }
    }
    this.#enter("idle");
    this.#work.stopped();
    this.waiters.dismissExpired();
  }

  #succeeded(): void {
    this.#work.succeeded();
    this.#pause.reset();
  }

  async #recover(error: unknown): Promise<void> {
    // Before that, nothing was sent that takes.
    const wasSent = this.#mode !== "connecting" && !hadNoEffect(error);
    if (wasSent) this.waiters.loseReply();
    this.#enter("recovering");
    this.waiters.dismissExpired();
    if ((await this.#steps.recover?.(error)) === true) return;
    const reason = this.#server.connections.explain(error);
    const effect = wasSent ? "unknown" : "none";
    const failure = new RedisError(`cannot take from ${this.#steps.name}`, reason, "REDIS", effect);
    if (!isPassing(failure.reply)) {
      this.waiters.failAll(failure);
    } else if (!this.waiters.isClosed) {
      this.#work.failed(failure);
      this.waiters.failUnserved(reason);
      this.disconnect();
      await this.#pause.wait();
    }
  }

  #reviewRest(): void {
    // No reply is under way that could carry a message for them.
    this.waiters.dismissExpired();
    if (!this.#mustRest() || !this.waiters.areThere) this.#endRest();
  }

  /** Ends the block for as long as it is in vain. Its reply still comes. Never rejects. */
  async #unblock(): Promise<void> {
    const isInVain = () => this.#mode === "unblocking";
    const pause = new Pause(5, 100);
    while (isInVain()) {
      try {
        // If the connection was not blocked, this command overtook the blocking one. If it was, the reply is under
        // way. Look again in both cases: it may be blocked then.
        await this.#client?.unblock();
        this.#unblocks.succeeded();
      } catch (error) {
        // The block ended by itself.
        if (!isInVain()) break;
        this.#unblocks.failed(new RedisError(`cannot end the wait of ${this.#steps.name}`, error));
        this.#unblocks.stopped();
      }
      await pause.wait();
    }
    this.#unblocking = undefined;
  }
}

/** The modes of a {@link BlockingLoop}, each with the modes that may follow it. */
const NEXT = {
  idle: ["gathering", "closed"],
  gathering: [
    "idle",
    "gathering",
    "connecting",
    "resting",
    "taking",
    "blocking",
    "giving back",
    "recovering",
  ],
  connecting: ["gathering", "recovering"],
  resting: ["gathering", "recovering"],
  taking: ["gathering", "giving back", "recovering"],
  blocking: ["gathering", "unblocking", "giving back", "recovering"],
  unblocking: ["gathering", "blocking", "giving back", "recovering"],
  "giving back": ["gathering", "recovering"],
  recovering: ["gathering"],
  closed: [],
} as const;

type Mode = keyof typeof NEXT;
