import type { Redis } from "ioredis";
import { replyOf } from "../failure.ts";
import { serverOf } from "./cluster-node.ts";
import { networkTime } from "../time/runtime.ts";

/** The purpose of a dedicated connection. */
export type Role = "subscriber" | "blocking" | "probe";

/** The dedicated connections of one client. Each serves one purpose, and is never reopened. */
export class DedicatedConnections {
  readonly #roles = new Map<Redis, Role>();
  /** Of each subscriber that is connected: the id of its server. */
  readonly #serverIds = new WeakMap<Redis, Promise<string | undefined>>();
  /** The id of the server to which the background client has reconnected last. */
  #leaderId: Promise<string | undefined> | undefined;

  /**
   * Connects a client, or ends it if it is not ready within `timeout` milliseconds.
   *
   * Rejects with what ioredis rejects with, or the last error that it emitted.
   */
  async connect(connection: Redis, role: Role, timeout: number): Promise<Redis> {
    const leaderId = this.#leaderId;
    let reason: unknown;
    connection.on("error", (error) => (reason = error));
    this.#roles.set(connection, role);
    connection.once("end", () => this.#roles.delete(connection));
    const timer = networkTime.setTimeout(() => {
      reason ??= new Error("Redis did not reply in time");
      connection.disconnect();
    }, timeout);
    try {
      await connection.connect();
    } catch (error) {
      connection.disconnect();
      // connect() only says that the connection is closed. The event says why.
      throw reason ?? error;
    } finally {
      networkTime.clearTimeout(timer);
    }
    if (role === "subscriber") {
      // Asked now: once it has subscribed, a connection with RESP2 accepts no INFO.
      const serverId = serverIdOf(connection);
      serverId.catch(() => {});
      this.#serverIds.set(connection, serverId);
      if (leaderId !== this.#leaderId) void this.#endUnlessWithLeader(connection);
    }
    return connection;
  }

  /** Ends the connections that are stale. */
  end(isStale: (connection: Redis, role: Role) => boolean): void {
    for (const [connection, role] of this.#roles) {
      if (isStale(connection, role)) connection.disconnect();
    }
  }

  /**
   * Ends the connections to a server that the background client, which has just connected again, has left.
   *
   * A subscriber to a server that is no longer the master hears nothing, and the new master may have its host and port.
   * So subscribers are compared by the id of the server process. A block that is ended may lose its message: it is only
   * ended if the host or port has changed, since Redis itself ends the blocks on a master that becomes a replica.
   */
  follow(background: Redis): void {
    const server = serverOf(background);
    this.end((connection, role) => role !== "subscriber" && serverOf(connection) !== server);
    this.#leaderId = serverIdOf(background);
    this.#leaderId.catch(() => {});
    for (const [connection, role] of this.#roles) {
      if (role === "subscriber") void this.#endUnlessWithLeader(connection);
    }
  }

  async #endUnlessWithLeader(subscriber: Redis): Promise<void> {
    const leaderId = this.#leaderId;
    // One that is still connecting is compared once it is connected.
    const serverId = this.#serverIds.get(subscriber);
    if (serverId === undefined) return;
    try {
      const [own, leaders] = await Promise.all([serverId, leaderId]);
      if (leaderId !== this.#leaderId || (own !== undefined && own === leaders)) return;
    } catch {
      // One of the two connections is lost already: what replaces it is compared anew.
      return;
    }
    subscriber.disconnect();
  }
}

/** The id that a server process gave itself when it started; undefined if Redis does not reveal it. */
async function serverIdOf(redis: Redis): Promise<string | undefined> {
  try {
    return /^run_id:(\w+)/m.exec(await redis.info("server"))?.[1];
  } catch (error) {
    if (replyOf(error) === undefined) throw error;
    return undefined;
  }
}
