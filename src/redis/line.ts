import type { Cluster, Redis } from "ioredis";
import { isCluster, type RedisClient } from "./client.ts";

/** The socket of a connection. There is none before it is made. */
type Socket = Redis["stream"] | undefined;

/** The sockets to the masters of a Cluster. */
type Sockets = ReadonlyMap<Redis, Socket>;

/**
 * Whether a command still has the connections on which it was sent.
 *
 * ioredis silently sends a command again when its connection is lost before the reply comes. The reply belongs to the last copy, so
 * a refusal says nothing of earlier copies. So we compare the sockets at the moment when ioredis gets the command with those at the
 * moment of the reply. Nothing is added to the client, which may be lent.
 */
export class Line {
  readonly #client: RedisClient;
  readonly #before: Socket | Sockets;

  /** To be made right before the command is sent. */
  constructor(client: RedisClient) {
    this.#client = client;
    // Of one connection without a map: every call passes here.
    this.#before = isCluster(client) ? socketsOf(client) : client.stream;
  }

  /** Whether no copy of the command can have been sent but one. */
  get isSame(): boolean {
    const before = this.#before;
    const client = this.#client;
    if (!isCluster(client)) return before === undefined || client.stream === before;
    const now = socketsOf(client);
    const masters = [...(before as Sockets)];
    const isKept = ([owner, socket]: [Redis, Socket]) =>
      // A node's connection is made for the first command.
      now.has(owner) && (socket === undefined || now.get(owner) === socket);
    return now.size === masters.length && masters.every(isKept);
  }
}

function socketsOf(cluster: Cluster): Sockets {
  return new Map(cluster.nodes("master").map((node) => [node, node.stream as Socket]));
}
