import { RedisError } from "../errors.ts";
import { isPassing } from "../failure.ts";
import type { Connections } from "../redis/connections.ts";
import type { Work } from "../redis/troubles.ts";
import { Unblocking } from "../redis/unblocking.ts";
import { Pause } from "../time/pause.ts";
import { BlockingConnection, type Taken } from "./blocking-connection.ts";
import { GiveBack } from "./give-back.ts";
import { OpenSources, type PausableSource, type Source } from "./open-sources.ts";
import { PopRhythm } from "./pop-rhythm.ts";
import { checkFollows, type TakerMode } from "./taker-mode.ts";
import type { TakerHost, TakerOptions } from "./taker-options.ts";
import { Waiters, type WaitOptions } from "../run/waiters.ts";

/**
 * Takes ready messages for all waiters in this process, over one connection per queue, or per set of queues that are
 * polled together.
 *
 * A taker never takes more messages than its waiters want, so no message sits in a busy process. While anybody waits,
 * the taker blocks for one message. One message is therefore all that Redis can hand to a process that has vanished
 * unnoticed. Where more messages may be ready, a pop for the other waiters is sent in front of the block.
 *
 * Of several LISTs in a *fixed* order, a later one is served only while those before it are empty, and the taker only
 * blocks. In a *rotating* order each LIST comes first in its turn, and the taker also pops, evenly from all of them.
 * These LISTs have to be on one server. They may change while the taker runs.
 *
 * When the last waiter leaves, the taker ends the block with CLIENT UNBLOCK from another connection and awaits the
 * block's reply, which either carries a message or says that there is none. Dropping the socket instead would lose the
 * message in one race out of three. A message that nobody takes is returned to the head of its LIST.
 *
 * The taker is always in exactly one mode:
 *
 * - **idle**: nobody waits, and nothing is under way. The connection stays open.
 *   The first waiter → *gathering*. `close` → *closed*.
 * - **gathering**: lets the current turn of the event loop finish, so that all calls of one turn are served together.
 *   Every step begins and ends here. The first rule that applies picks the next mode:
 *   1. Nobody waits → *idle*.
 *   2. Whether some queue is paused is unknown → *connecting*.
 *   3. Every queue is paused → *paused*.
 *   4. There is no connection → *connecting*.
 *   5. Somebody is unserved (see {@link Waiters}) → *popping*.
 *   6. {@link PopRhythm} chooses → *popping* or *blocking*.
 * - **connecting**: a connection is being opened, or the pause watch is asking Redis.
 *   Done → *gathering*, because all waiters may have left meanwhile.
 * - **paused**: nothing is sent to Redis. Waiters keep waiting until their time is over.
 *   A queue is resumed, its state becomes unknown, or the last waiter leaves → *gathering*.
 * - **popping**: a pop without a block is under way.
 *   Its reply → *gathering*, or → *giving back* if it carries more than the remaining waiters take.
 * - **blocking**: a block is under way, perhaps with a pop in front of it, and somebody waits for it.
 *   A message, or the end of the block's time → *gathering*. The last waiter leaves, a queue is paused or resumed, the
 *   sources change, or the pop brought more than the remaining waiters take → *unblocking*.
 * - **unblocking**: nobody needs the block, and the taker is ending it.
 *   The reply → *giving back* if it leaves messages that nobody takes, otherwise → *gathering*. Somebody starts to wait
 *   before the reply, no message is left over, and the sources are unchanged → *blocking*.
 * - **giving back**: {@link GiveBack} returns messages that nobody took, however long that takes. The taker takes
 *   nothing meanwhile, since later messages would overtake these. Done → *gathering*.
 * - **recovering**: a step failed. If Redis refuses for good, every waiter is rejected. Otherwise the taker reports the
 *   failure, drops the connection and pauses, longer each time. Then → *gathering*.
 * - **closed**: the connection is closed. Nothing follows.
 *
 * *Closing* is not a mode: `close` rejects all waiters and admits no more, so the taker becomes idle by the same steps
 * as whenever the last waiter leaves.
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
  /** The sources that the current block was sent for. */
  #blockedFor: readonly Source[] = [];
  /** Ends the mode *paused*. */
  #endRest = () => {};
  #connection: BlockingConnection | undefined;
  /** Messages that the pop in front of a block returned in excess. They are given back once the block has ended. */
  #left: readonly Taken[] = [];
  /** Runs from leaving *idle* until *idle* again. */
  #working: Promise<void> | undefined;
  #stepping: Promise<void> | undefined;

  constructor(sources: readonly PausableSource[], host: TakerHost, options: TakerOptions = {}) {
    this.#queue = options.name ?? `queue "${sources.map(({ ready }) => ready).join('", "')}"`;
    this.#options = options;
    this.#sources = new OpenSources(options.order, () => this.#onChange());
    this.#connections = host.connections;
    this.#takes = host.troubles.work();
    this.#unblocking = new Unblocking(this.#queue, host.troubles.work());
    this.#waiters = new Waiters(this.#queue, {
      // A paused taker sends nothing, so no waiter has to wait for a connection.
      isConnected: () => this.#openConnection !== undefined || this.#mode === "paused",
      onChange: () => this.#onChange(),
    });
    const mayPop = options.order === "rotating" || sources.length === 1;
    this.#rhythm = new PopRhythm(mayPop, options.isSparing);
    this.#giveBack = new GiveBack(this.#queue, this.#waiters, host);
    this.#sources.set(sources);
  }

  /** Whether {@link close} has completed. */
  get isClosed(): boolean {
    return this.#mode === "closed";
  }

  /**
   * Waits for messages as {@link Waiters.wait} does.
   *
   * Also rejects with {@link RedisError} if Redis refuses the pop (WRONGTYPE, NOPERM). A lost connection does not
   * reject: the taker reports it, and the wait goes on.
   */
  wait(max: number, options: WaitOptions): Promise<readonly Taken[]> {
    return this.#waiters.wait(max, options);
  }

  /** Puts messages that nobody took, oldest first, back to the heads of their LISTs. */
  putBack(messages: readonly Taken[]): void {
    void this.#giveBack.putBack(messages);
  }

  /**
   * Replaces the sources; with none, all waiters keep waiting. Resolves once messages that were under way from the
   * former sources are delivered or given back. Only for a taker with a rotating order.
   */
  async setSources(sources: readonly PausableSource[]): Promise<void> {
    this.#sources.set(sources);
    if (this.#mode !== "paused") await this.#stepping?.catch(() => {});
  }

  /** Rejects every wait with a `ClosedError`; resolves once this process holds no message. */
  async close(): Promise<void> {
    this.#giveBack.close();
    this.#sources.close();
    this.#waiters.close();
    this.#pause.end();
    await this.#working;
    await this.#unblocking.close();
    this.#takes.ended();
    await this.#giveBack.settled();
    this.#connection?.disconnect();
    if (this.#mode !== "closed") this.#enter("closed");
  }

  /** Sets the mode. Nothing else does. */
  #enter(mode: TakerMode): void {
    checkFollows(this.#mode, mode);
    this.#mode = mode;
  }

  /** Called when somebody starts to wait or leaves, when messages are left over, and when other sources are open. */
  #onChange(): void {
    const isStale = this.#blockedFor !== this.#sources.open;
    const isUnwanted = this.#waiters.waitingCount === 0 || this.#left.length > 0 || isStale;
    if (this.#mode === "idle" && this.#waiters.areThere) this.#working = this.#run();
    else if (this.#mode === "blocking" && isUnwanted) this.#enter("unblocking");
    else if (this.#mode === "unblocking" && !isUnwanted) this.#enter("blocking");
    else if (this.#mode === "paused") this.#reviewPause();
    // Also if the mode was unblocking already: the last attempt may have failed.
    if (this.#mode !== "unblocking") return;
    this.#unblocking.start(
      () => this.#connection?.unblock(),
      () => this.#mode === "unblocking",
    );
  }

  #reviewPause(): void {
    // No reply is under way that could carry a message for them.
    this.#waiters.dismissExpired();
    const { open, unknown } = this.#sources;
    if (open.length + unknown.length > 0 || !this.#waiters.areThere) this.#endRest();
  }

  async #run(): Promise<void> {
    this.#rhythm.restart();
    this.#enter("gathering");
    for (;;) {
      // Run after the reactions to promises that the last step settled, so that a caller who waits again at once joins
      // the next step.
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
    if (this.#sources.unknown.length > 0) await this.#learnPauses();
    else if (this.#sources.open.length === 0) await this.#rest();
    else if (connection === undefined) await this.#connect();
    else if (this.#waiters.unservedCount > 0) await this.#popForUnserved(connection);
    else await this.#take(connection);
  }

  async #learnPauses(): Promise<void> {
    this.#enter("connecting");
    await Promise.all(this.#sources.unknown.map(({ pauses }) => pauses.known()));
    this.#enter("gathering");
  }

  async #connect(): Promise<void> {
    this.#enter("connecting");
    this.#connection = await BlockingConnection.open(this.#connections, this.#sources.all);
    this.#enter("gathering");
  }

  /** Waits until a queue is resumed, or the last waiter leaves. */
  async #rest(): Promise<void> {
    this.#enter("paused");
    // Nothing will be sent for waiters whose time is over.
    this.#waiters.expireUnserved();
    this.#waiters.dismissExpired();
    if (this.#waiters.areThere) await new Promise<void>((resolve) => (this.#endRest = resolve));
    this.#rhythm.restart();
    this.#enter("gathering");
  }

  get #openConnection(): BlockingConnection | undefined {
    return this.#connection?.isLost === false ? this.#connection : undefined;
  }

  /** Pops for waiters whose time was over before there was a connection. */
  async #popForUnserved(connection: BlockingConnection): Promise<void> {
    this.#enter("popping");
    const count = this.#waiters.expireUnserved();
    const sources = this.#sources.next(count);
    await this.#deliver(await connection.pop(count, sources, this.#options.order));
    this.#takes.succeeded();
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
    // One of the two may fail while the other carries messages.
    const [pop, block] = await Promise.allSettled([given, blocked]);
    const fromBlock = block.status === "fulfilled" ? block.value : [];
    const left = this.#left;
    this.#left = [];
    await this.#deliver([...left, ...fromBlock]);
    if (pop.status === "rejected") throw pop.reason;
    if (block.status === "rejected") throw block.reason;
    if (step.isBlocking) this.#rhythm.onBlock(fromBlock.length);
    this.#takes.succeeded();
    this.#pause.reset();
  }

  /** Delivers messages to the waiters and gives the rest back. Nothing else may be under way. */
  async #deliver(messages: readonly Taken[]): Promise<void> {
    const left = this.#waiters.giveLast(messages);
    if (left.length > 0) {
      // Start before entering the mode, which may throw.
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
