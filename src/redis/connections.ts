import type { Redis } from "ioredis";
import { isSameNode, nodeOf, peerOf, serverOf } from "./cluster-node.ts";
import { ClosedError } from "../errors.ts";
import {
  isEnded,
  isGivenUp,
  isNotLetIn,
  isRefusedForNow,
  messageOf,
  UnansweredError,
} from "../failure.ts";
import { callWithin, type CallLimit } from "./call.ts";
import type { Heartbeat } from "./heartbeat.ts";
import { warnOfMissingOptions, type LentClient } from "./lent-client.ts";
import {
  connectForCalls,
  connectionName,
  duplicateForBackground,
  duplicateForOneLife,
  end,
  isClient,
  isCluster,
  revive,
  type ConnectionOptions,
  type RedisClient,
} from "./client.ts";
import { isReplying } from "./replying.ts";
import { Readiness } from "./readiness.ts";
import { ServerClock } from "../time/server-clock.ts";
import type { Troubles } from "./troubles.ts";
import { watchOver } from "./watchdog.ts";

/** What a dedicated connection is for. */
export type Role = "subscriber" | "blocking" | "probe";

/** Who hears from the connections. */
export interface ConnectionsListener {
  /** A server said `serverTime` (epoch ms) between `sentAt` (`performance.now()`) and now. */
  readonly onTime: (serverTime: number, sentAt: number) => void;
  readonly troubles: Troubles;
}

/**
 * The connections of one client, each opened when it is first needed.
 *
 * - `commands` carries the calls that a user awaits. It is the client that we were lent, or one made
 *   to the user's options, and what those say about retries and time-outs holds.
 * - `background` is ours: transfers, and whatever takes messages out of Redis. It never re-sends a
 *   command whose reply was lost, since the first copy may have been carried out; such a command is
 *   rejected. It connects again for ever.
 * - A dedicated connection (`open`) subscribes or blocks. It lives once: when it is lost, its owner
 *   opens a new one. On Cluster it goes to one node.
 *
 * `background` is what learns of a failover: from Redis's refusals, from the Sentinels, or from the
 * slots of the Cluster. Dedicated connections follow it: those to a server that it has left are ended.
 */
export class Connections {
  readonly commands: RedisClient;
  /** Whether `commands` can be sent through. */
  readonly readiness: Readiness;
  readonly #isLent: boolean;
  readonly #listener: ConnectionsListener;
  #background: RedisClient | undefined;
  #backgroundReadiness: Readiness | undefined;
  readonly #heartbeats = new Map<Redis, Heartbeat>();
  readonly #dedicated = new Map<Redis, Role>();
  /** Why Redis cannot be reached now, if that is known. */
  #unreachable: string | undefined;
  /** Whether `commands`, when it was last in trouble, had ended and was connected again. */
  #isRevived = false;
  #isClosed = false;

  constructor(redis: string | ConnectionOptions | LentClient, listener: ConnectionsListener) {
    this.#listener = listener;
    this.#isLent = isClient(redis);
    this.commands = isClient(redis) ? (redis as RedisClient) : connectForCalls(redis);
    this.readiness = Readiness.of(this.commands);
    // Nothing is added to a client that we were lent, not even a listener.
    if (this.#isLent) warnOfMissingOptions(this.commands);
    else this.#attend(this.commands as Redis);
  }

  /** Sends a command that somebody awaits; see {@link callWithin}. */
  async call<Reply>(
    through: "commands" | "background",
    limit: CallLimit,
    send: (client: RedisClient) => Promise<Reply>,
    onLate?: (reply: Reply) => void,
  ): Promise<Reply> {
    const client = this[through];
    const readiness = through === "commands" ? this.readiness : this.#backgroundReadiness;
    try {
      return await callWithin(
        limit,
        () => readiness?.wait(),
        () => send(client),
        through === "commands" ? this.mayRetry : isRefusedForNow,
        onLate,
      );
    } catch (error) {
      throw this.explain(error);
    }
  }

  /** Whether a command of `commands` that failed so may be sent again, if nothing changes when it is sent twice. */
  readonly mayRetry = (error: unknown): boolean =>
    isRefusedForNow(error) || (isEnded(error) && this.#isRevived && !this.#isClosed);

  /** The error of a command; it says why Redis cannot be reached, if that is what made the call fail. */
  explain(error: unknown): unknown {
    const why = this.#unreachable;
    if (why === undefined) return error;
    if (isGivenUp(error)) return new Error(`Redis cannot be reached: ${why}`);
    if (!(error instanceof UnansweredError) || error.cause !== undefined) return error;
    return new UnansweredError(`${error.message}: ${why}`, error.wasSent);
  }

  /** Whether the server, or the Cluster node that serves `key`, can be reached and replies, as far as is known. */
  isReplying(key: string): boolean {
    // Nothing watches a client that was lent, but the background client.
    const clients = [this.commands, this.#background?.status === "ready" && this.#background];
    return clients.every((one) => !one || isReplying(one, key, this.#heartbeats));
  }

  get background(): RedisClient {
    this.#background ??= this.#openBackground();
    return this.#background;
  }

  /**
   * Opens a connection that does one thing. `key` tells which Cluster node it has to reach; any node
   * will do without it. It has to be ready within `timeout` milliseconds. With an `id` its name is its own.
   */
  async open(role: Role, key?: string, timeout = CONNECT, id?: string): Promise<Redis> {
    if (this.#isClosed) throw new ClosedError("the client");
    const { background } = this;
    const name = connectionName(role, key, id);
    return await this.#connect(
      isCluster(background)
        ? duplicateForOneLife(await nodeOf(background, key), name, background.options.keyPrefix)
        : duplicateForOneLife(background, name),
      role,
      timeout,
    );
  }

  /**
   * Resolves when Redis replies to a connection made for the purpose. `key` tells which Cluster node is
   * meant. Rejects soon: a server that takes longer is slow, and its connections are not to blame.
   */
  async probe(key?: string): Promise<void> {
    (await this.open("probe", key, PROBE)).disconnect();
  }

  /** A client that reaches the same server as `connection`, while that one is blocked. */
  peerOf(connection: Redis): Redis {
    const background = this.background;
    return isCluster(background) ? peerOf(background, connection) : background;
  }

  /** A client that reaches the master which serves a key. Rejects if the Cluster has none now. */
  async nodeOf(key: string): Promise<Redis> {
    const { background } = this;
    return isCluster(background) ? await nodeOf(background, key) : background;
  }

  /** Ends what takes and moves, but not what carries the calls that users await. */
  abandon(): void {
    for (const heartbeat of this.#heartbeats.values()) heartbeat.close();
    this.#endDedicated(() => true);
    if (this.#background !== undefined) end(this.#background);
  }

  /** Ends what is ours. Replies that are still under way are lost: finish the work first. */
  close(): void {
    this.#isClosed = true;
    this.abandon();
    if (!this.#isLent) end(this.commands);
  }

  /** Attends to `commands` that are ours. */
  #attend(commands: Redis): void {
    this.#tellTroublesOf(commands);
    this.#watch(commands, () => askTime(commands, this.#listener.onTime));
  }

  /** Notes and tells that Redis cannot be reached, and why, and when it can be again. */
  #tellTroublesOf(client: RedisClient): void {
    const work = this.#listener.troubles.work();
    client.on("ready", () => {
      this.#unreachable = undefined;
      work.succeeded();
    });
    client.on("error", (error: Error) => {
      if (isEnded(error) && !this.#isClosed && !isCluster(client)) {
        this.#isRevived ||= client === this.commands;
        revive(client);
        return;
      }
      if (client === this.commands) this.#isRevived = false;
      this.#unreachable = messageOf(error);
      if (isNotLetIn(error)) Readiness.of(client).fail(error);
      if (!this.#isClosed) work.unreachable(error);
    });
  }

  #openBackground(): RedisClient {
    if (this.#isClosed) throw new ClosedError("the client");
    const background = duplicateForBackground(this.commands);
    this.#backgroundReadiness = Readiness.of(background);
    // Without a listener ioredis prints errors.
    this.#tellTroublesOf(background);
    // Every queue that opens a connection on a cluster may wait for "ready".
    background.setMaxListeners(0);
    if (isCluster(background)) {
      background.on("+node", (node: Redis) => {
        this.#watch(
          node,
          () => node.ping(),
          // The sooner the new slots are known, the sooner the node is left if it is down.
          () => background.refreshSlotsCache(),
        );
      });
      background.on("-node", (node: Redis) => {
        this.#heartbeats.get(node)?.close();
        this.#heartbeats.delete(node);
        this.#endDedicated(({ options }) => isSameNode(options, node.options));
      });
    } else {
      this.#watch(background, () => askTime(background, this.#listener.onTime));
      let isFirst = true;
      background.on("ready", () => {
        const server = serverOf(background);
        // A subscriber hears nothing on a server that is not the master any more, which may have the
        // same address still. It costs nothing to subscribe again; a block that is ended may lose its
        // message, and so is left alone where Redis itself would end it.
        const isStale = (connection: Redis, role: Role) =>
          role === "subscriber" || serverOf(connection) !== server;
        if (!isFirst) this.#endDedicated(isStale);
        isFirst = false;
      });
    }
    return background;
  }

  async #connect(connection: Redis, role: Role, timeout: number): Promise<Redis> {
    let reason: unknown;
    connection.on("error", (error) => (reason = error));
    this.#dedicated.set(connection, role);
    connection.once("end", () => this.#dedicated.delete(connection));
    const timer = setTimeout(() => {
      reason = new Error("Redis did not reply in time");
      connection.disconnect();
    }, timeout);
    try {
      await connection.connect();
    } catch (error) {
      connection.disconnect();
      // connect() says only that the connection is closed; the event says why.
      throw reason ?? error;
    } finally {
      clearTimeout(timer);
    }
    return connection;
  }

  /** Resolves when Redis replies to another connection to the same address. */
  async #probeBeside(connection: Redis): Promise<void> {
    const other = duplicateForOneLife(connection, connectionName("probe"));
    (await this.#connect(other, "probe", PROBE)).disconnect();
  }

  #endDedicated(isStale: (connection: Redis, role: Role) => boolean): void {
    for (const [connection, role] of this.#dedicated) {
      if (isStale(connection, role)) connection.disconnect();
    }
  }

  /** Gives a connection up when it has died silently. See {@link watchOver}. */
  #watch(connection: Redis, ask: () => Promise<unknown>, onSilence?: () => void): void {
    const probe = () => this.#probeBeside(connection);
    this.#heartbeats.set(connection, watchOver(connection, ask, probe, onSilence));
  }
}

async function askTime(client: Redis, onTime: ConnectionsListener["onTime"]): Promise<void> {
  const sentAt = performance.now();
  onTime(ServerClock.fromTime(await client.time()), sentAt);
}

/** Milliseconds until a connection of ours is ready, at most. */
const CONNECT = 5000;

/** Milliseconds until a connection is ready that is only to show that Redis replies. */
const PROBE = 1500;
