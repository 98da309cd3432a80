import { isCluster, type RedisClient } from "./client.ts";

/** A client's sockets; on a Cluster those to its masters. */
type Sockets = ReadonlyMap<object, unknown>;

/**
 * Whether a command still has the connections on which it was sent.
 *
 * ioredis sends a command again when its connection is lost before the reply comes, and tells nobody. The reply is that
 * to the last copy. A refusal then says nothing of the copies before it. So the sockets are compared: those of the moment
 * when the command is handed to ioredis with those of the moment when the reply has come. Nothing is added to the client,
 * which may be lent.
 */
export class Line {
  readonly #client: RedisClient;
  readonly #before: Sockets;

  /** To be made right before the command is sent. */
  constructor(client: RedisClient) {
    this.#client = client;
    this.#before = socketsOf(client);
  }

  /** Whether no copy of the command can have been sent but one. */
  get isSame(): boolean {
    const now = socketsOf(this.#client);
    const isKept = ([owner, socket]: [object, unknown]) =>
      // A node's connection is made for the first command.
      now.has(owner) && (socket === undefined || now.get(owner) === socket);
    return now.size === this.#before.size && [...this.#before].every(isKept);
  }
}

function socketsOf(client: RedisClient): Sockets {
  const ends = isCluster(client) ? client.nodes("master") : [client];
  // There is none before the first connection is made.
  return new Map(ends.map((end) => [end, end.stream as typeof end.stream | undefined]));
}
