import { RedisError, type DelaylineError } from "../errors.ts";
import { isPassing } from "../failure.ts";
import type { Connections } from "../redis/connections.ts";
import type { Troubles, Work } from "../redis/troubles.ts";
import { Unblocking } from "../redis/unblocking.ts";
import { Pause } from "../time/pause.ts";
import { BlockingConnection, type Taken } from "./blocking-connection.ts";
import { GiveBack } from "./give-back.ts";
import { OpenSources, type PausableSource, type Source } from "./open-sources.ts";
import { PopRhythm } from "./pop-rhythm.ts";
import { checkFollows, type TakerMode } from "./taker-mode.ts";
import type { TakerOptions } from "./taker-options.ts";
import { Waiters, type WaitOptions } from "../queue/consuming/waiters.ts";

/**
 * Takes ready messages for all who wait for them in this process, over one connection per queue (or per
 * set of queues that are polled together).
 *
 * It never fetches more than is waited for, so no message lies in a process that is busy. While anybody
 * waits it blocks for one message: that is all that Redis can give to a process that has vanished without
 * a word. Where there may be more, a pop for the others goes in front of the block.
 *
 * Of several LISTs in a *fixed* order a later one is served while those before it are empty, and it only blocks. In
 * a *rotating* order each comes first in its turn, and it also pops, from all of them evenly. These LISTs have to be
 * on one server, and may change while it runs.
 *
 * When the last waiter leaves, the block is ended with CLIENT UNBLOCK from another connection, and its
 * reply is awaited: it holds a message, or says that there is none. To drop the socket instead would lose
 * the message in every third race. A message that arrives for nobody goes back to the head of its LIST.
 *
 * The taker is always in one of these modes:
 *
 * - **idle**: nobody waits, and nothing is under way. A connection stays open. The first who starts to
 *   wait makes it *gathering*; `close` makes it *closed*.
 * - **gathering**: the current turn of the event loop ends first, so that all who start to wait in it are
 *   served together. Each step begins and ends here. If it is not known whether a queue is paused, or
 *   there is no connection, the next mode is *connecting*; if every queue is paused, *paused*. If somebody
 *   is unserved (see {@link Waiters}), it is *popping*. Otherwise {@link PopRhythm} chooses *popping* or
 *   *blocking*. If nobody waits any more, it is *idle*.
 * - **connecting**: asking whether a queue is paused, or opening a connection. Then *gathering*: all may have left.
 * - **paused**: nothing is asked of Redis, and who waits goes on waiting until its time is over. When a
 *   queue is resumed, or nobody waits any more: *gathering*.
 * - **popping**: a pop without a block is under way. Then *gathering*; but *giving back* if it brought
 *   more than those who have stayed can take.
 * - **blocking**: a block is under way, perhaps with a pop in front, and somebody waits for it. When it
 *   brings a message, or its time is over: *gathering*. When the last waiter leaves, a queue is paused or
 *   resumed, the queues are others, or the pop brought more than those who have stayed can take: *unblocking*.
 * - **unblocking**: the block is in vain, and is being ended. If somebody starts to wait before the reply
 *   is there, no message is left over, and no queue was paused or resumed: *blocking*. When the reply is
 *   there: *giving back* if there is a message for nobody, otherwise *gathering*.
 * - **giving back**: {@link GiveBack} puts back what nobody took, however long that takes. Nothing is
 *   taken meanwhile, since a later message would overtake these. Then *gathering*.
 * - **recovering**: a step has failed. If Redis refuses for good, all who wait are told. Otherwise the
 *   failure is reported, the connection is given up, and a growing pause follows. Then *gathering*.
 * - **closed**: the connection is ended, and nothing follows.
 *
 * Closing is no mode. It makes all waiters leave and lets none come, and the taker becomes idle as it does
 * whenever the last one leaves.
 */
export class Taker {
  readonly #queue: string;
  readonly #sources: OpenSources;
  readonly #options: TakerOptions;
  readonly #connections: Connections;
  readonly #takes: Work;
  readonly #unblocking: Unblocking;
  readonly #waiters: Waiters<Taken>;
  readonly #rhythm: PopRhythm;
  readonly #giveBack: GiveBack;
  readonly #pause = new Pause(100, 500);

  #mode: TakerMode = "idle";
  /** What the block that is under way was sent for. */
  #blockedFor: readonly Source[] = [];
  /** Ends the mode *paused*. */
  #wake = () => {};
  #connection: BlockingConnection | undefined;
  /** What the pop in front of a block brought for nobody. It goes back when the block has ended. */
  #left: readonly Taken[] = [];
  /** All that happens between idle and idle. */
  #working: Promise<void> | undefined;
  #stepping: Promise<void> | undefined;
  #puttingBack: Promise<unknown> | undefined;

  constructor(
    sources: readonly PausableSource[],
    shared: {
      readonly connections: Connections;
      readonly report: (error: DelaylineError) => void;
      readonly troubles: Troubles;
      readonly closeTimeout: number;
    },
    options: TakerOptions = {},
  ) {
    this.#queue = options.name ?? `queue "${sources.map(({ ready }) => ready).join('", "')}"`;
    this.#options = options;
    this.#sources = new OpenSources(options.order, () => this.#onChange());
    this.#connections = shared.connections;
    this.#takes = shared.troubles.work();
    this.#unblocking = new Unblocking(this.#queue, shared.troubles.work());
    this.#waiters = new Waiters(this.#queue, {
      // While it is paused nothing is asked, so there is no connection to wait for.
      isConnected: () => this.#openConnection !== undefined || this.#mode === "paused",
      onChange: () => this.#onChange(),
    });
    const mayPop = options.order === "rotating" || sources.length === 1;
    this.#rhythm = new PopRhythm(mayPop, options.isSparing);
    this.#giveBack = new GiveBack(this.#queue, this.#waiters, shared);
    this.#sources.set(sources);
  }

  /** Whether {@link close} has ended. */
  get isClosed(): boolean {
    return this.#mode === "closed";
  }

  /**
   * Waits for messages as {@link Waiters.wait} does; rejects with {@link RedisError} also if Redis refuses the pop
   * (WRONGTYPE, NOPERM). A lost connection does not reject: it is reported, and the wait goes on.
   */
  wait(max: number, options: WaitOptions): Promise<readonly Taken[]> {
    return this.#waiters.wait(max, options);
  }

  /** Puts messages back to the heads of their LISTs, oldest first; they were taken for nobody. */
  putBack(messages: readonly Taken[]): void {
    if (messages.length === 0) return;
    const puttingBack = this.#giveBack.putBack(messages);
    this.#puttingBack = Promise.all([this.#puttingBack, puttingBack]);
  }

  /**
   * From now on it takes from these; while there are none, all wait. Resolves when what was under way from others is
   * delivered, or has gone back. Only for a taker with a rotating order.
   */
  async setSources(sources: readonly PausableSource[]): Promise<void> {
    this.#sources.set(sources);
    if (this.#mode !== "paused") await this.#stepping?.catch(() => {});
  }

  /** Ends every wait with a `ClosedError`; resolves when nothing is in hand any more. */
  async close(): Promise<void> {
    this.#giveBack.close();
    this.#sources.close();
    this.#waiters.close();
    this.#pause.end();
    await this.#working;
    await this.#unblocking.close();
    this.#takes.ended();
    await this.#puttingBack;
    await this.#giveBack.receiptRemoved();
    this.#connection?.disconnect();
    if (this.#mode !== "closed") this.#enter("closed");
  }

  /** Sets the mode. Nothing else does. */
  #enter(mode: TakerMode): void {
    checkFollows(this.#mode, mode);
    this.#mode = mode;
  }

  /** Somebody has started to wait, or has left; messages are left over; or other sources are open. */
  #onChange(): void {
    const isStale = this.#blockedFor !== this.#sources.open;
    const isInVain = this.#waiters.waitingCount === 0 || this.#left.length > 0 || isStale;
    if (this.#mode === "idle" && this.#waiters.areThere) this.#working = this.#work();
    else if (this.#mode === "blocking" && isInVain) this.#enter("unblocking");
    else if (this.#mode === "unblocking" && !isInVain) this.#enter("blocking");
    else if (this.#mode === "paused") this.#onPaused();
    // Also if it was unblocking before: the last attempt may have failed.
    if (this.#mode !== "unblocking") return;
    this.#unblocking.start(
      () => this.#connection?.unblock(),
      () => this.#mode === "unblocking",
    );
  }

  #onPaused(): void {
    // No reply is under way that could bring them a message.
    this.#waiters.dismissExpired();
    const { open, unknown } = this.#sources;
    if (open.length + unknown.length > 0 || !this.#waiters.areThere) this.#wake();
  }

  async #work(): Promise<void> {
    this.#rhythm.restart();
    this.#enter("gathering");
    for (;;) {
      // After the promises that the last step has settled: who waits again at once is served, too.
      await new Promise<void>((resolve) => process.nextTick(resolve));
      if (!this.#waiters.areThere) break;
      try {
        await (this.#stepping = this.#step());
      } catch (error) {
        await this.#recover(error);
      }
    }
    this.#enter("idle");
    this.#takes.stopped();
    this.#waiters.dismissExpired();
  }

  async #step(): Promise<void> {
    const connection = this.#openConnection;
    const { open, unknown } = this.#sources;
    if (unknown.length > 0) {
      this.#enter("connecting");
      await Promise.all(unknown.map(({ pauses }) => pauses.known()));
      this.#enter("gathering");
    } else if (open.length === 0) {
      await this.#rest();
    } else if (connection === undefined) {
      this.#enter("connecting");
      this.#connection = await BlockingConnection.open(
        this.#connections,
        this.#sources.all,
        this.#options.onConnected,
      );
      this.#enter("gathering");
    } else if (this.#waiters.unservedCount > 0) {
      this.#enter("popping");
      const count = this.#waiters.expireUnserved();
      await this.#deliver(
        await connection.pop(count, this.#sources.next(count), this.#options.order),
      );
      this.#takes.succeeded();
    } else {
      await this.#take(connection);
      this.#takes.succeeded();
      this.#pause.reset();
    }
  }

  /** Waits until a queue is resumed, or nobody waits any more. */
  async #rest(): Promise<void> {
    this.#enter("paused");
    // Those whose time is over already get none.
    this.#waiters.expireUnserved();
    this.#waiters.dismissExpired();
    if (this.#waiters.areThere) await new Promise<void>((resolve) => (this.#wake = resolve));
    this.#rhythm.restart();
    this.#enter("gathering");
  }

  get #openConnection(): BlockingConnection | undefined {
    return this.#connection?.isLost === false ? this.#connection : undefined;
  }

  async #take(connection: BlockingConnection): Promise<void> {
    const step = this.#rhythm.next(this.#waiters.wanted);
    this.#enter(step.isBlocking ? "blocking" : "popping");
    this.#blockedFor = this.#sources.open;
    const [popped, blocked] = connection.take(step, {
      popped: this.#sources.next(step.pop),
      blocked: this.#sources.next(step.isBlocking ? 1 : 0),
    });
    const given = popped.then((messages) => {
      if (step.pop > 0) this.#rhythm.onPop(step, messages.length);
      this.#left = this.#waiters.give(messages);
      this.#onChange();
    });
    // One may fail while the other brings messages.
    const [pop, block] = await Promise.allSettled([given, blocked]);
    const brought = block.status === "fulfilled" ? block.value : [];
    const left = this.#left;
    this.#left = [];
    await this.#deliver([...left, ...brought]);
    if (pop.status === "rejected") throw pop.reason;
    if (block.status === "rejected") throw block.reason;
    if (step.isBlocking) this.#rhythm.onBlock(brought.length);
  }

  /** Gives messages to those who wait, and the others back. Nothing else is under way. */
  async #deliver(messages: readonly Taken[]): Promise<void> {
    const left = this.#waiters.giveLast(messages);
    if (left.length > 0) {
      // Begun before the mode is entered, which may throw.
      const puttingBack = this.#giveBack.putBack(left);
      this.#enter("giving back");
      await puttingBack;
    }
    this.#enter("gathering");
  }

  async #recover(error: unknown): Promise<void> {
    this.#enter("recovering");
    this.#waiters.dismissExpired();
    const failure = new RedisError(`cannot take from ${this.#queue}`, error);
    if (!isPassing(failure.reply)) {
      this.#waiters.failAll(failure);
    } else if (!this.#waiters.isClosed) {
      this.#takes.failed(failure);
      this.#waiters.failUnserved(failure);
      this.#connection?.disconnect();
      this.#connection = undefined;
      await this.#pause.wait();
    }
    this.#enter("gathering");
  }
}
