import type { Redis, RedisOptions } from "ioredis";
import { nodeOf, peerOf } from "./cluster-node.ts";
import { ClosedError, RedisError, type DelaylineError } from "../errors.ts";
import { isGivenUp } from "../failure.ts";
import { Heartbeat } from "./heartbeat.ts";
import { warnOfMissingOptions } from "./lent-client.ts";
import {
  connectForCalls,
  connectionName,
  duplicateForBackground,
  duplicateForOneLife,
  end,
  isClient,
  isCluster,
  type RedisClient,
} from "./client.ts";
import { ServerClock } from "../time/server-clock.ts";
import { hasDied } from "./watchdog.ts";

/** What a dedicated connection is for. */
export type Role = "subscriber" | "blocking" | "probe";

/** Who hears from the connections. */
export interface ConnectionsListener {
  /** A server said `serverTime` (microseconds) between `sentAt` (as `ServerClock.local`) and now. */
  readonly onTime: (serverTime: number, sentAt: number) => void;
  readonly report: (error: DelaylineError) => void;
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
  readonly #isLent: boolean;
  readonly #listener: ConnectionsListener;
  #background: RedisClient | undefined;
  readonly #heartbeats = new Map<Redis, Heartbeat>();
  readonly #dedicated = new Map<Redis, Role>();
  /** How often `commands`, if it is ours, has become ready, and why it is not ready now. */
  #readyCount = 0;
  #unreachable: Error | undefined;
  #isClosed = false;

  constructor(redis: string | RedisOptions | RedisClient, listener: ConnectionsListener) {
    this.#listener = listener;
    this.#isLent = isClient(redis);
    this.commands = isClient(redis) ? redis : connectForCalls(redis);
    // Nothing is added to a client that we were lent, not even a listener.
    if (this.#isLent) warnOfMissingOptions(this.commands);
    else this.#attend(this.commands as Redis);
  }

  /**
   * Notes the state of `commands` before something is sent. Returns a function that tells, when that
   * has failed, whether it may have been sent; only for a client of ours that is known.
   */
  watchSending(): () => boolean {
    if (this.#isLent || this.commands.status === "ready") return () => true;
    const before = this.#readyCount;
    return () => this.#readyCount > before;
  }

  /** The error of a command, or why Redis cannot be reached, if that is what made ioredis give up. */
  explain(error: unknown): unknown {
    if (this.#unreachable === undefined || !isGivenUp(error)) return error;
    return new Error(`Redis cannot be reached: ${this.#unreachable.message}`);
  }

  get background(): RedisClient {
    this.#background ??= this.#openBackground();
    return this.#background;
  }

  /**
   * Opens a connection that does one thing. `key` tells which Cluster node it has to reach; any node
   * will do without it. It has to be ready within `timeout` milliseconds.
   */
  async open(role: Role, key?: string, timeout = CONNECT): Promise<Redis> {
    if (this.#isClosed) throw new ClosedError("the client");
    const { background } = this;
    const name = connectionName(role, key);
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

  /** Attends to `commands` that are ours: says once that Redis cannot be reached, and why. */
  #attend(commands: Redis): void {
    commands.on("ready", () => {
      this.#readyCount++;
      this.#unreachable = undefined;
    });
    commands.on("error", (error: Error) => {
      const isNews = this.#unreachable === undefined && !this.#isClosed;
      this.#unreachable = error;
      if (isNews) this.#listener.report(new RedisError("cannot reach Redis", error));
    });
    this.#watch(commands, () => askTime(commands, this.#listener.onTime));
  }

  #openBackground(): RedisClient {
    if (this.#isClosed) throw new ClosedError("the client");
    const background = duplicateForBackground(this.commands);
    // Without a listener ioredis prints errors; the commands that fail tell the same to us.
    background.on("error", ignore);
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

  /** Gives a connection up when it has died silently. Offers that were under way are sent again. */
  #watch(connection: Redis, ask: () => Promise<unknown>, onSilence: () => void = ignore): void {
    let isDeciding = false;
    const decide = async (): Promise<void> => {
      isDeciding = true;
      const isDead = await hasDied({
        isSilent: () => heartbeat.isSilent && connection.status === "ready",
        probe: () => this.#probeBeside(connection),
        grace: GRACE,
      });
      isDeciding = false;
      // With `true`: a plain disconnect() would be final.
      if (isDead) connection.disconnect(true);
    };
    const heartbeat = new Heartbeat(connection, ask, () => {
      onSilence();
      if (!isDeciding) void decide();
    });
    this.#heartbeats.set(connection, heartbeat);
  }
}

async function askTime(client: Redis, onTime: ConnectionsListener["onTime"]): Promise<void> {
  const sentAt = ServerClock.local();
  onTime(ServerClock.fromTime(await client.time()), sentAt);
}

/** The server at the other end; undefined while it is not connected. */
function serverOf({ stream }: Redis): string {
  return `${stream.remoteAddress}:${stream.remotePort}`;
}

function isSameNode(a: RedisOptions, b: RedisOptions): boolean {
  return a.host === b.host && a.port === b.port;
}

/** Milliseconds until a connection of ours is ready, at most. */
const CONNECT = 5000;

/** Milliseconds until a connection is ready that is only to show that Redis replies. */
const PROBE = 1500;

/** Milliseconds that a reply may be late while Redis replies to others. */
const GRACE = 500;

function ignore(): void {}
