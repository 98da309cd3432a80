import type { Redis } from "ioredis";
import type { Connections } from "../redis/connections.ts";
import { hasDied } from "../redis/watchdog.ts";

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
 * answer is overdue is given up if it has died; see {@link hasDied}.
 */
export class BlockingConnection {
  readonly #connections: Connections;
  readonly #sources: readonly Source[];
  readonly #redis: Redis;
  /** The connection's id on the server. */
  readonly #id: number;
  #isBlocked = false;

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

  /** Whether a block is under way. */
  get isBlocked(): boolean {
    return this.#isBlocked;
  }

  /** Pops what is in a source, the first unless another one is named, `count` at most. */
  async pop(count: number, source = this.#sources[0] as Source): Promise<Taken[]> {
    const payloads = await this.#watched(0, this.#redis.lpopBuffer(source.ready, count));
    return (payloads ?? []).map((payload) => ({ source, payload }));
  }

  /**
   * Pops what is in the first source, `count` at most, and blocks for one more behind that. Both are
   * sent together, which is half the work for Redis; both have to be awaited.
   */
  popAndBlock(count: number): readonly [popped: Promise<Taken[]>, blocked: Promise<Taken[]>] {
    const { stream } = this.#redis;
    stream.cork();
    try {
      return [this.pop(count), this.block()];
    } finally {
      stream.uncork();
    }
  }

  /** Blocks for one message, of the first source that has one, for a few seconds at most. */
  async block(): Promise<Taken[]> {
    const targets = this.#sources.map(({ ready }) => ready);
    this.#isBlocked = true;
    try {
      const popped = await this.#watched(BLOCK, this.#redis.blpopBuffer(targets, BLOCK));
      if (popped === null) return [];
      const [key, payload] = popped;
      // The answer names the key with ioredis's prefix.
      const ready = key.toString().slice((this.#redis.options.keyPrefix ?? "").length);
      const source = this.#sources.find((candidate) => candidate.ready === ready);
      return [{ source: source ?? (this.#sources[0] as Source), payload }];
    } finally {
      this.#isBlocked = false;
    }
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
      return await answer;
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

/** Milliseconds after which an answer is overdue. */
const OVERDUE = 500;

/** Milliseconds that an answer may be late while Redis answers others. */
const GRACE = 1000;
