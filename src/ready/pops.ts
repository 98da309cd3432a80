import { popFromMany } from "../lua/ready/ready.ts";
import { run } from "../lua/script.ts";
import type { BlockingClient } from "../redis/blocking-client.ts";
import type { Source, SourceOrder } from "./open-sources.ts";
import type { Step } from "./pop-rhythm.ts";

/** A payload, and the LIST that it was popped from. */
export interface Taken {
  readonly source: Source;
  readonly payload: Buffer;
}

/** Pops ready messages over a taker's connection, and blocks for them. */
export class Pops {
  /** Whether the server seems to have cached the script that pops from several LISTs. */
  #isScriptKnown = true;

  /**
   * Sends a pop from the `popped` sources, a block for the `blocked` ones, or both. Both are sent together, which
   * halves the work for Redis. Both promises have to be awaited; a command that was not sent resolves to no messages.
   */
  take(
    client: BlockingClient,
    { pop, isBlocking }: Step,
    {
      popped,
      blocked,
    }: { readonly popped: readonly Source[]; readonly blocked: readonly Source[] },
  ): readonly [popped: Promise<Taken[]>, blocked: Promise<Taken[]>] {
    // A script text sent behind the block would wait until the block ends. So the block waits for the text.
    const isTextDue = pop > 0 && popped.length > 1 && !this.#isScriptKnown;
    const { stream } = client.redis;
    stream.cork();
    try {
      const popping =
        pop > 0 ? this.#pop(client, pop, popped, isBlocking && !isTextDue) : Promise.resolve([]);
      if (!isBlocking) return [popping, Promise.resolve([])];
      const block = () => this.#block(client, blocked);
      return [popping, isTextDue ? popping.then(block) : block()];
    } finally {
      stream.uncork();
    }
  }

  /**
   * Pops up to `count` messages from these sources: in a fixed order from the first one that has any, in a rotating
   * order evenly from all.
   */
  async pop(
    client: BlockingClient,
    count: number,
    sources: readonly Source[],
    order: SourceOrder = "fixed",
  ): Promise<Taken[]> {
    if (order === "rotating") return await this.#pop(client, count, sources, false);
    for (const source of sources) {
      const popped = await this.#popFromOne(client, count, source);
      if (popped.length > 0) return popped;
    }
    return [];
  }

  #pop(
    client: BlockingClient,
    count: number,
    sources: readonly Source[],
    isBlockBehind: boolean,
  ): Promise<Taken[]> {
    const [only, ...others] = sources as readonly [Source, ...Source[]];
    return others.length === 0
      ? this.#popFromOne(client, count, only)
      : this.#popFromMany(client, count, sources, isBlockBehind);
  }

  async #popFromMany(
    client: BlockingClient,
    count: number,
    sources: readonly Source[],
    isBlockBehind: boolean,
  ): Promise<Taken[]> {
    const rows = sources.map(({ ready }) => ({ list: ready }));
    const onUnknown = () => {
      if (isBlockBehind) throw new UnknownScript();
    };
    try {
      const popping = run(client.redis, popFromMany, {}, { count }, rows, onUnknown);
      const popped = await client.watched(popping);
      this.#isScriptKnown = true;
      return popped.map(({ row, payload }) => ({ source: sources[row] as Source, payload }));
    } catch (error) {
      if (!(error instanceof UnknownScript)) throw error;
      this.#isScriptKnown = false;
      return [];
    }
  }

  async #popFromOne(client: BlockingClient, count: number, source: Source): Promise<Taken[]> {
    const popping = client.redis.lpopBuffer(source.ready, count);
    const payloads = await client.watched(popping);
    return (payloads ?? []).map((payload) => ({ source, payload }));
  }

  /** Blocks for one message of the first source that has one. */
  async #block(client: BlockingClient, sources: readonly Source[]): Promise<Taken[]> {
    const lists = sources.map(({ ready }) => ready);
    const { redis } = client;
    const popped = await client.block(lists, (seconds) => redis.blpopBuffer(lists, seconds));
    if (popped === null) return [];
    const [key, payload] = popped;
    // The reply names the key with ioredis's prefix.
    const ready = key.toString().slice((redis.options.keyPrefix ?? "").length);
    const source = sources.find((candidate) => candidate.ready === ready);
    return [{ source: source ?? (sources[0] as Source), payload }];
  }
}

/**
 * The server does not know the script that was sent in front of a block. That pop returns nothing, and the next one
 * sends the text.
 */
class UnknownScript extends Error {}
