import { BlockingClient } from "../redis/blocking-client.ts";
import type { Connections } from "../redis/connections.ts";
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

/** A connection that pops ready messages and blocks for them. It lives once; see {@link BlockingClient}. */
export class BlockingConnection {
  readonly #client: BlockingClient;

  private constructor(client: BlockingClient) {
    this.#client = client;
  }

  static async open(
    connections: Connections,
    sources: readonly Source[],
  ): Promise<BlockingConnection> {
    return new BlockingConnection(await BlockingClient.open(connections, sources[0]?.ready));
  }

  get isLost(): boolean {
    return this.#client.isLost;
  }

  /**
   * Sends a pop of the first of these sources, a block for all of them, or both. Both are sent together, which
   * is half the work for Redis. Both promises have to be awaited; what was not sent brings nothing.
   */
  take(
    { pop, isBlocking }: Step,
    sources: readonly Source[],
  ): readonly [popped: Promise<Taken[]>, blocked: Promise<Taken[]>] {
    const { stream } = this.#client.redis;
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
    await this.#client.unblock();
  }

  /** Ends the connection. A reply that is still under way is lost. */
  disconnect(): void {
    this.#client.disconnect();
  }

  async #pop(count: number, source: Source): Promise<Taken[]> {
    const { redis } = this.#client;
    const payloads = await this.#client.watched(0, redis.lpopBuffer(source.ready, count));
    return (payloads ?? []).map((payload) => ({ source, payload }));
  }

  /** Blocks for one message, of the first source that has one, for two seconds at most. */
  async #block(sources: readonly Source[]): Promise<Taken[]> {
    const lists = sources.map(({ ready }) => ready);
    const { redis } = this.#client;
    const popped = await this.#client.watched(BLOCK, redis.blpopBuffer(lists, BLOCK));
    if (popped === null) return [];
    const [key, payload] = popped;
    // The reply names the key with ioredis's prefix.
    const ready = key.toString().slice((redis.options.keyPrefix ?? "").length);
    const source = sources.find((candidate) => candidate.ready === ready);
    return [{ source: source ?? (sources[0] as Source), payload }];
  }
}

/**
 * Seconds that one BLPOP blocks at most. A connection that died silently is found within two seconds
 * more; an idle process sends 30 blocks a minute for each queue that it takes from.
 */
const BLOCK = 2;
