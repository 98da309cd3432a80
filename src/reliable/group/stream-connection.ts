import { unpackEntry, type Entry } from "../../lua/fragments/entry.ts";
import { BlockingClient, type OnConnected } from "../../redis/blocking-client.ts";
import type { Connections } from "../../redis/connections.ts";
import type { Membership } from "./consumer-name.ts";

/** An entry that was read; one in a foreign format as its fields and values. */
export type Read = Entry | { readonly entryId: string; readonly fields: readonly Buffer[] };

/**
 * A connection that reads a stream for one consumer, blocking or not. It is not reopened; see {@link BlockingClient}.
 */
export class StreamConnection {
  readonly #client: BlockingClient;
  readonly #stream: string;
  readonly #member: Membership;

  private constructor(client: BlockingClient, stream: string, member: Membership) {
    this.#client = client;
    this.#stream = stream;
    this.#member = member;
  }

  /** Rejects with the error of ioredis or of `onConnected`; see {@link BlockingClient.open}. */
  static async open(
    connections: Connections,
    stream: string,
    member: Membership,
    onConnected?: OnConnected,
  ): Promise<StreamConnection> {
    const client = await BlockingClient.open(connections, stream, onConnected);
    return new StreamConnection(client, stream, member);
  }

  get isLost(): boolean {
    return this.#client.isLost;
  }

  /**
   * Reads up to `count` entries that are new to the group; if there are none, blocks for two seconds or returns none.
   */
  async read(count: number, isBlocking: boolean): Promise<Read[]> {
    const { redis } = this.#client;
    const { group, consumer } = this.#member;
    const head = ["GROUP", group, consumer, "COUNT", count] as const;
    const reply = isBlocking
      ? redis.xreadgroupBuffer(...head, "BLOCK", BLOCK * 1000, "STREAMS", this.#stream, ">")
      : redis.xreadgroupBuffer(...head, "STREAMS", this.#stream, ">");
    const streams = (await this.#client.watched(isBlocking ? BLOCK : 0, reply)) as StreamReply;
    return (streams?.[0]?.[1] ?? []).map(([id, fields]) => {
      const entryId = id.toString();
      return unpackEntry(entryId, fields) ?? { entryId, fields };
    });
  }

  /** Ends the block that is under way, if Redis has received it. Its reply still arrives. */
  unblock(): Promise<void> {
    return this.#client.unblock();
  }

  /** Ends the connection. Entries in a reply that is still under way stay in flight for the consumer. */
  disconnect(): void {
    this.#client.disconnect();
  }
}

type StreamReply = [stream: Buffer, entries: [id: Buffer, fields: Buffer[]][]][] | null;

/**
 * How long one read blocks at most, in seconds. A connection that died silently is found within two seconds more. An
 * idle process sends 30 reads a minute for each group.
 */
const BLOCK = 2;
