import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import type { Connections } from "./connections.ts";

/** A target LIST, and where the receipts of its give-backs stand. */
export interface Source {
  readonly target: string;
  readonly receipt: string;
}

/** A payload, and where it was popped from. */
export interface Taken {
  readonly source: Source;
  readonly payload: Buffer;
}

/**
 * A connection that pops ready messages and blocks for them. It lives once: after it was lost, its
 * owner opens the next.
 *
 * A pop whose answer does not come is not simply given up: Redis may only be slow, and would hand the
 * messages to a connection that is no longer there. The connection is given up only where Redis
 * answers another one meanwhile.
 */
export class BlockingConnection {
  readonly #connections: Connections;
  readonly #sources: readonly Source[];
  readonly #redis: Redis;
  /** The connection's id on the server. */
  readonly #id: number;
  #blockedFor = 0;
  #hasMultiPop = true;

  private constructor(
    connections: Connections,
    sources: readonly Source[],
    redis: Redis,
    id: number,
  ) {
    this.#connections = connections;
    this.#sources = sources;
    this.#redis = redis;
    this.#id = id;
  }

  static async open(
    connections: Connections,
    sources: readonly Source[],
  ): Promise<BlockingConnection> {
    const redis = await connections.open("blocking", sources[0]?.target);
    try {
      return new BlockingConnection(connections, sources, redis, await redis.client("ID"));
    } catch (error) {
      redis.disconnect();
      throw error;
    }
  }

  get isLost(): boolean {
    return this.#redis.status !== "ready";
  }

  /** How many messages the block that is under way takes at most; 0 if none is. */
  get blockedFor(): number {
    return this.#blockedFor;
  }

  /**
   * Blocks for messages for a few seconds at most. Answers as soon as there is one, with what the first
   * source that has one holds, `count` at most.
   */
  async block(count: number): Promise<Taken[]> {
    this.#blockedFor = count;
    try {
      return await (this.#hasMultiPop ? this.#popMany(count) : this.#popOneThenMore(count));
    } finally {
      this.#blockedFor = 0;
    }
  }

  async #popMany(count: number): Promise<Taken[]> {
    const targets = this.#sources.map(({ target }) => target);
    const popping = this.#redis.blmpopBuffer(
      BLOCK,
      targets.length,
      targets,
      "LEFT",
      "COUNT",
      count,
    );
    let popped;
    try {
      popped = await this.#watched(BLOCK, popping);
    } catch (error) {
      // Redis before 7.0, or access rules that leave it out. It was refused, so nothing was popped.
      if (!(error instanceof Error && /^(ERR unknown|NOPERM)/.test(error.message))) throw error;
      this.#hasMultiPop = false;
      return await this.#popOneThenMore(count);
    }
    if (popped === null) return [];
    const source = this.#sourceOf(popped[0]);
    return popped[1].map((payload) => ({ source, payload }));
  }

  /** The same in two steps, for want of BLMPOP. */
  async #popOneThenMore(count: number): Promise<Taken[]> {
    const targets = this.#sources.map(({ target }) => target);
    const popped = await this.#watched(BLOCK, this.#redis.blpopBuffer(targets, BLOCK));
    if (popped === null) return [];
    const source = this.#sourceOf(popped[0]);
    const payloads = [popped[1]];
    if (count > 1) {
      const more = this.#watched(0, this.#redis.lpopBuffer(source.target, count - 1));
      // If it fails, there is still the first; and the next block tells what is wrong.
      payloads.push(...((await more.catch(() => null)) ?? []));
    }
    return payloads.map((payload) => ({ source, payload }));
  }

  #sourceOf(key: Buffer): Source {
    // The answer names the key with ioredis's prefix.
    const target = key.toString().slice((this.#redis.options.keyPrefix ?? "").length);
    const source = this.#sources.find((candidate) => candidate.target === target);
    return source ?? (this.#sources[0] as Source);
  }

  /** Ends the block that is under way, if it has reached Redis; its answer still comes. */
  async unblock(): Promise<void> {
    await this.#connections.peerOf(this.#redis).client("UNBLOCK", this.#id);
  }

  /** Ends the connection. An answer that is still under way is lost. */
  disconnect(): void {
    this.#redis.disconnect();
  }

  /** Awaits an answer that should come within `seconds` and some. */
  async #watched<Answer>(seconds: number, answer: Promise<Answer>): Promise<Answer> {
    let isPending = true;
    const watchdog = setTimeout(
      () => void this.#giveUpWhile(() => isPending),
      seconds * 1000 + 2 * GRACE,
    );
    try {
      return await answer;
    } finally {
      isPending = false;
      clearTimeout(watchdog);
    }
  }

  async #giveUpWhile(isPending: () => boolean): Promise<void> {
    while (isPending()) {
      try {
        await this.#connections.probe(this.#sources[0]?.target);
        await sleep(GRACE);
        if (isPending()) this.disconnect();
        return;
      } catch {
        // Redis answers nobody: it is not this connection that is to blame.
        await sleep(GRACE);
      }
    }
  }
}

/** Seconds that one pop blocks at most. */
const BLOCK = 5;

/** Milliseconds that an answer may be late while Redis answers others. */
const GRACE = 1000;
