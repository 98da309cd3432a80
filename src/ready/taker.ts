import type { BlockingClient } from "../redis/blocking-client.ts";
import { BlockingLoop } from "../run/blocking-loop.ts";
import type { WaitOptions } from "../run/waiters.ts";
import { GiveBack, type TakerServer } from "./give-back.ts";
import { OpenSources, type PausableSource, type SourceOrder } from "./open-sources.ts";
import { PopRhythm } from "./pop-rhythm.ts";
import { Pops, type Taken } from "./pops.ts";

/** How a taker takes. */
export interface TakerOptions {
  /** Defaults to "fixed". */
  readonly order?: SourceOrder | undefined;
  /** The name of the queue in errors. Defaults to the names of the LISTs. */
  readonly name?: string | undefined;
  /** Whether the waiters also wait elsewhere at the same time; see {@link PopRhythm}. Defaults to false. */
  readonly isSparing?: boolean | undefined;
}

/**
 * Takes ready messages for all waiters in this process, over one connection per queue, or per set of queues that are
 * polled together. It is a {@link BlockingLoop}.
 *
 * A taker never takes more messages than its waiters want, so no message sits in a busy process. While there are
 * waiters, the taker blocks for one message. So Redis can hand at most one message to a process that has vanished
 * unnoticed. Where more messages may be ready, a pop for the other waiters is sent in front of the block.
 *
 * Of several LISTs in a *fixed* order, a later one is served only while those before it are empty, and the taker only
 * blocks. In a *rotating* order each LIST comes first in its turn, and the taker also pops, evenly from all of them.
 * These LISTs have to be on one server. They may change while the taker runs.
 *
 * The first rule that applies picks the next step:
 *
 * 1. Whether some queue is paused is unknown: it asks.
 * 2. Every queue is paused: it rests, until a queue is resumed or its state becomes unknown.
 * 3. There is no connection: it opens one.
 * 4. Some waiters are unserved (see `Waiters`): it pops for them.
 * 5. {@link PopRhythm} chooses a pop, a block, or a pop in front of a block.
 *
 * A block is also in vain when a queue is paused or resumed, when the sources change, or when the pop in front of it
 * brought more than the remaining waiters take. An unclaimed message is returned to the head of its LIST.
 */
export class Taker {
  readonly #order: SourceOrder | undefined;
  readonly #sources: OpenSources;
  readonly #loop: BlockingLoop<Taken>;
  readonly #rhythm: PopRhythm;
  readonly #pops = new Pops();
  readonly #giveBack: GiveBack;

  constructor(sources: readonly PausableSource[], server: TakerServer, options: TakerOptions = {}) {
    const name = options.name ?? `queue "${sources.map(({ ready }) => ready).join('", "')}"`;
    this.#order = options.order;
    this.#sources = new OpenSources(options.order, () => this.#loop.review());
    const mayPop = options.order === "rotating" || sources.length === 1;
    this.#rhythm = new PopRhythm(mayPop, options.isSparing);
    this.#loop = new BlockingLoop(server, {
      name,
      step: () => this.#step(),
      giveBack: (messages) => this.#giveBack.putBack(messages),
      onLeft: () => this.#rhythm.restart(),
    });
    this.#giveBack = new GiveBack(name, this.#loop.waiters, server);
    this.#sources.set(sources);
  }

  /**
   * Waits for messages as `Waiters.wait` does.
   *
   * Also rejects with a `RedisError` if Redis refuses the pop (WRONGTYPE, NOPERM). A lost connection does not reject:
   * the taker reports it, and the wait goes on.
   */
  wait(max: number, options: WaitOptions): Promise<readonly Taken[]> {
    return this.#loop.waiters.wait(max, options);
  }

  /** Rejects every wait that is under way with `reason`. A message that arrives for one of them is given back. */
  dismiss(reason: Error): void {
    this.#loop.dismiss(reason);
  }

  /** Puts unclaimed messages, oldest first, back to the heads of their LISTs; see {@link GiveBack.putBack}. */
  putBack(messages: readonly Taken[]): Promise<void> {
    return this.#giveBack.putBack(messages);
  }

  /**
   * Replaces the sources; with none, all waiters keep waiting. Resolves once messages that were under way from the
   * former sources are delivered or given back. Only for a taker with a rotating order.
   */
  async setSources(sources: readonly PausableSource[]): Promise<void> {
    this.#sources.set(sources);
    await this.#loop.stepped();
  }

  /** Rejects every wait with a `ClosedError`; resolves once this process holds no message. */
  async close(): Promise<void> {
    this.#giveBack.close();
    this.#sources.close();
    await this.#loop.close();
    await this.#giveBack.done();
  }

  #step(): Promise<void> {
    const { all, open, unknown } = this.#sources;
    const { client, waiters } = this.#loop;
    if (unknown.length > 0) {
      return this.#loop.prepare(() => Promise.all(unknown.map(({ pauses }) => pauses.known())));
    }
    if (open.length === 0) return this.#rest();
    if (client === undefined) return this.#loop.open(all[0]?.ready);
    return waiters.unservedCount > 0 ? this.#popForUnserved(client) : this.#take(client);
  }

  async #rest(): Promise<void> {
    await this.#loop.rest(() => this.#sources.open.length + this.#sources.unknown.length === 0);
    this.#rhythm.restart();
  }

  /** Pops for waiters whose time was over before there was a connection. */
  #popForUnserved(client: BlockingClient): Promise<void> {
    const count = this.#loop.waiters.expireUnserved();
    const sources = this.#sources.next(count);
    return this.#loop.take(async () => {
      await this.#loop.deliver(await this.#pops.pop(client, count, sources, this.#order));
    });
  }

  async #take(client: BlockingClient): Promise<void> {
    const step = this.#rhythm.next(this.#loop.waiters.wanted);
    const { open } = this.#sources;
    /** Messages that the pop returned in excess. They are given back once the block behind it has ended. */
    let left: readonly Taken[] = [];
    const take = async () => {
      const [popped, blocked] = this.#pops.take(client, step, {
        popped: this.#sources.next(step.pop),
        blocked: this.#sources.next(step.isBlocking ? 1 : 0),
      });
      const given = popped.then((messages) => {
        if (step.pop > 0) this.#rhythm.onPop(step, messages.length);
        left = this.#loop.waiters.give(messages);
        this.#loop.review();
      });
      // One of the two may fail while the other carries messages.
      const [pop, block] = await Promise.allSettled([given, blocked]);
      const fromBlock = block.status === "fulfilled" ? block.value : [];
      await this.#loop.deliver([...left, ...fromBlock]);
      if (pop.status === "rejected") throw pop.reason;
      if (block.status === "rejected") throw block.reason;
      if (step.isBlocking) this.#rhythm.onBlock(fromBlock.length);
    };
    if (!step.isBlocking) return await this.#loop.take(take);
    const isStale = () => left.length > 0 || this.#sources.open !== open;
    await this.#loop.block(take, () => this.#loop.waiters.pendingCount === 0 || isStale());
  }
}
