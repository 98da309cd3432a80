import { FOR_NOW } from "../failure.ts";
import type { Redis } from "ioredis";
import type { Connections } from "../redis/connections.ts";
import { hasDied } from "../redis/watchdog.ts";
import type { Step } from "./pop-rhythm.ts";

/** A ready LIST, and where the receipts of its give-backs stand. */
export interface Source {
  readonly ready: string;
  readonly receipts: string;
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
 * While it blocks it cannot be asked whether it is alive. So a block is short, and a connection whose
 * reply is overdue is given up if it has died; see {@link hasDied}.
 */
export class BlockingConnection {
  readonly #connections: Connections;
  readonly #sources: readonly Source[];
  readonly #redis: Redis;
  /** The connection's id on the server. */
  readonly #id: number;

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
    const redis = await connections.open("blocking", sources[0]?.ready);
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

  /**
   * Sends a pop of the first of these sources, a block for all of them, or both. Both are sent together, which
   * is half the work for Redis. Both promises have to be awaited; what was not sent brings nothing.
   */
  take(
    { pop, isBlocking }: Step,
    sources: readonly Source[],
  ): readonly [popped: Promise<Taken[]>, blocked: Promise<Taken[]>] {
    const { stream } = this.#redis;
    const [first] = sources as readonly [Source];
    stream.cork();
    try {
      return [
        pop > 0 ? this.#pop(pop, first) : Promise.resolve([]),
        isBlocking ? this.#block(sources) : Promise.resolve([]),
      ];
    } finally {
      stream.uncork();
    }
  }

  /** Pops from the first of these sources that has messages, `count` at most. */
  async popFromAny(count: number, sources: readonly Source[]): Promise<Taken[]> {
    for (const source of sources) {
      const popped = await this.#pop(count, source);
      if (popped.length > 0) return popped;
    }
    return [];
  }

  /** Ends the block that is under way, if it has reached Redis; its reply still comes. */
  async unblock(): Promise<void> {
    await this.#connections.peerOf(this.#redis).client("UNBLOCK", this.#id);
  }

  /** Ends the connection. A reply that is still under way is lost. */
  disconnect(): void {
    this.#redis.disconnect();
  }

  async #pop(count: number, source: Source): Promise<Taken[]> {
    const payloads = await this.#watched(0, this.#redis.lpopBuffer(source.ready, count));
    return (payloads ?? []).map((payload) => ({ source, payload }));
  }

  /** Blocks for one message, of the first source that has one, for two seconds at most. */
  async #block(sources: readonly Source[]): Promise<Taken[]> {
    const lists = sources.map(({ ready }) => ready);
    const popped = await this.#watched(BLOCK, this.#redis.blpopBuffer(lists, BLOCK));
    if (popped === null) return [];
    const [key, payload] = popped;
    // The reply names the key with ioredis's prefix.
    const ready = key.toString().slice((this.#redis.options.keyPrefix ?? "").length);
    const source = sources.find((candidate) => candidate.ready === ready);
    return [{ source: source ?? (sources[0] as Source), payload }];
  }

  /** Awaits a reply that should come within `seconds` and some. */
  async #watched<Reply>(seconds: number, reply: Promise<Reply>): Promise<Reply> {
    let isSilent = true;
    const watchdog = setTimeout(
      () => {
        const probe = () => this.#connections.probe(this.#sources[0]?.ready);
        void hasDied({ isSilent: () => isSilent, probe, grace: GRACE }).then((isDead) => {
          if (isDead) this.disconnect();
        });
      },
      seconds * 1000 + OVERDUE,
    );
    try {
      return await reply;
    } finally {
      isSilent = false;
      clearTimeout(watchdog);
    }
  }
}

/**
 * Seconds that one BLPOP blocks at most. A connection that died silently is found within two seconds
 * more; an idle process sends 30 blocks a minute for each queue that it takes from.
 */
const BLOCK = 2;

/** Milliseconds after which a reply is overdue. */
const OVERDUE = 500;

/** Milliseconds that a reply may be late while Redis replies to others. */
const GRACE = 1000;

/**
 * Whether a failure to take may pass by itself: the connection was lost, or the server starts, fails
 * over, or is busy. `reply` is the first word of Redis's refusal, if it is one.
 */
export function isPassing(reply: string | undefined): boolean {
  return reply === undefined || FOR_NOW.has(reply) || PASSING.has(reply);
}

/** Besides those of a failover. */
const PASSING = new Set(["UNBLOCKED", "BUSY", "MAXCLIENTS", "NOREPLICAS", "MISCONF"]);
