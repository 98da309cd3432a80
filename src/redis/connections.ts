import type { Cluster, Redis } from "ioredis";
import { isSameNode, nodeOf, ownerOf, peerOf, refreshed } from "./cluster-node.ts";
import type { RedisConnectionOptions } from "./address.ts";
import { Blocks } from "./blocks.ts";
import { ClosedError } from "../errors.ts";
import {
  isEnded,
  isGivenUp,
  isNotLetIn,
  isRedirection,
  isRefusedForNow,
  messageOf,
  noteEarlierCopy,
  ofMovedSlot,
  UnansweredError,
} from "../failure.ts";
import { callWithin, retrying, type CallLimit, type Wait } from "./call.ts";
import { DedicatedConnections, type Role } from "./dedicated.ts";
import type { Heartbeat } from "./heartbeat.ts";
import { HandshakeError } from "./handshake.ts";
import { warnOfMissingOptions, type LentClient } from "./lent-client.ts";
import { Line } from "./line.ts";
import {
  announced,
  connectForCalls,
  connectionName,
  duplicateForBackground,
  duplicateForOneLife,
  end,
  isClient,
  isCluster,
  revive,
  type RedisClient,
} from "./client.ts";
import { Readiness } from "./readiness.ts";
import { askTime } from "../time/server-clock.ts";
import type { Troubles } from "./troubles.ts";
import { watchOver } from "./watchdog.ts";
import { Progress, SILENCE } from "./progress.ts";
import { networkTime, nextTick, queueTime } from "../time/runtime.ts";

/** Receives what {@link Connections} observe. */
export interface ConnectionsListener {
  /** The server's clock showed `serverTime` (epoch ms) between `sentAt` (`queueTime.now()`) and now. */
  readonly onTime: (serverTime: number, sentAt: number) => void;
  /** The background connection was lost, on a Cluster that to a node; and whether the other end has ended it. */
  readonly onLost: (wasEnded: boolean) => void;
  /** Awaited, if it returns a promise, before a new connection takes messages. */
  readonly beforeTaking: () => Promise<void> | undefined;
  readonly troubles: Troubles;
}

/**
 * The connections of one client to one server or Cluster, each opened when it is first needed.
 *
 * - `commands` carries the calls that users await. It is the client that we were lent, or one made with the user's
 *   options; those decide about retries and timeouts.
 * - `background` is our own. It carries transfers and everything else that takes messages out of Redis. It never sends
 *   a command twice (the lost reply), and reconnects for ever.
 * - A dedicated connection (`open`) subscribes or blocks. It never reconnects: when it is lost, its owner opens a new
 *   one. On a Cluster it goes to one node.
 *
 * `background` learns of a failover: from Redis's refusals, from the Sentinels, or from the slots of the Cluster.
 * Dedicated connections to a server that it has left are ended.
 */
export class Connections {
  readonly commands: RedisClient;
  /** Whether commands can be sent through `commands`. */
  readonly readiness: Readiness;
  /** Milliseconds between two signs of life of an idle subscriber. */
  readonly heartbeat: number;
  /** How long the connections of {@link BlockingClient} may block. */
  readonly blocks: Blocks;
  readonly #isLent: boolean;
  readonly #listener: ConnectionsListener;
  #background: RedisClient | undefined;
  #backgroundReadiness: Readiness | undefined;
  readonly #heartbeats = new Map<Redis, Heartbeat>();
  readonly #dedicated = new DedicatedConnections();
  /** Why Redis cannot be reached now, if that is known. */
  #unreachable: string | undefined;
  /** Whether the last trouble of `commands` was that ioredis ended it, so that it was reconnected. */
  #isRevived = false;
  #isClosed = false;
  #followsUntil = -Infinity;
  /** A lent client has no heartbeat that looks at its progress. */
  #looks: NodeJS.Timeout | undefined;

  constructor(
    redis: string | RedisConnectionOptions | LentClient,
    heartbeat: number,
    listener: ConnectionsListener,
  ) {
    this.heartbeat = heartbeat;
    this.#listener = listener;
    this.blocks = new Blocks(heartbeat * QUIET, () => this.background.client("UNBLOCK", 0));
    this.#isLent = isClient(redis);
    this.commands = isClient(redis) ? announced(redis as RedisClient) : connectForCalls(redis);
    this.readiness = Readiness.of(this.commands, this.#isLent);
    // Nothing is added to a client that we were lent, not even a listener.
    if (this.#isLent) {
      warnOfMissingOptions(this.commands);
      this.#looks = networkTime.setInterval(() => lookAt(this.commands), LOOK).unref();
    } else this.#superviseCommands(this.commands as Redis);
  }

  /**
   * Sends a command that a caller awaits; see {@link callWithin}.
   *
   * Rejects with ioredis's errors, or an {@link UnansweredError}.
   */
  async call<Reply>(
    through: "commands" | "background",
    limit: CallLimit,
    send: (client: RedisClient) => Promise<Reply>,
    onLate?: (reply: Reply) => void,
  ): Promise<Reply> {
    const isMoving = () => this.isMoving(limit.expiries.timeout, this[through]);
    try {
      return await callWithin(limit, (wait) => this.send(through, wait, send), onLate, isMoving);
    } catch (error) {
      throw this.explain(error);
    }
  }

  /**
   * Sends a command as {@link call} does, for a caller that bounds the wait itself: as soon as it can be sent, and again
   * while `mayRetry` allows it for its error, as in a failover. Resolves with nothing if it was not wanted any more.
   *
   * Rejects with ioredis's errors, or an {@link UnansweredError}; the caller {@link explain}s them.
   */
  async send<Reply>(
    through: "commands" | "background",
    wait: Wait,
    send: (client: RedisClient) => Promise<Reply>,
    mayRetry = through === "commands" ? this.mayRetry : isRefusedForNow,
  ): Promise<Reply | undefined> {
    const client = this[through];
    const readiness = through === "commands" ? this.readiness : this.#backgroundReadiness;
    const connecting = readiness?.wait();
    if (connecting !== undefined) await connecting;
    if (!wait.begin()) return undefined;
    const attempt = () => {
      // What moves later are replies to this call, or to those before it.
      lookAt(client);
      return through === "commands" ? this.#confirmed(send) : send(client);
    };
    return await retrying(attempt, mayRetry, wait.endsAt, async () => {
      if (!wait.hasEnded()) await readiness?.wait();
      return !wait.hasEnded();
    });
  }

  /**
   * Sends a command on `commands`. Rejects if ioredis has sent it again to another database, which only happens with a
   * lent client. If ioredis may have sent it again at all, its error says that an earlier copy may have had an effect.
   */
  #confirmed<Reply>(send: (client: RedisClient) => Promise<Reply>): Promise<Reply> {
    const line = new Line(this.commands);
    const { database } = this.readiness;
    const confirm = async (reply: Reply) => {
      await database?.confirm();
      return reply;
    };
    return send(this.commands).then(database && confirm, (error: unknown) => {
      if (!line.isSame) noteEarlierCopy(error);
      throw error;
    });
  }

  /** Whether a command on `commands` may be sent again after this error, provided that sending it twice is safe. */
  readonly mayRetry = (error: unknown): boolean =>
    isRefusedForNow(error) || (isEnded(error) && this.#isRevived && !this.#isClosed);

  /** Adds to a call's error why Redis cannot be reached, if that made the call fail. */
  explain(error: unknown): unknown {
    const why = this.#unreachable;
    if (why === undefined || error instanceof HandshakeError) return error;
    if (isGivenUp(error)) return new Error(`Redis cannot be reached: ${why}`);
    if (!(error instanceof UnansweredError) || error.cause !== undefined) return error;
    return new UnansweredError(`${error.message}: ${why}`, error.wasSent);
  }

  /**
   * Returns the error of a command on a dedicated connection. If the node refused it since it no longer serves the slot,
   * the error says so, and it is known which node does.
   */
  async ofNode(error: unknown): Promise<unknown> {
    const { background } = this;
    if (!isRedirection(error) || !isCluster(background)) return error;
    await refreshed(background);
    return ofMovedSlot(error as Error);
  }

  /** Whether the server, or the Cluster node that serves `key`, can be reached and replies, as far as is known. */
  isReplying(key: string): boolean {
    // A lent client has no heartbeat; the background client's speaks for it.
    const background = this.#background?.status === "ready" ? [this.#background] : [];
    return [this.commands, ...background].every((client) => {
      if (client.status !== "ready") return false;
      const node = isCluster(client) ? ownerOf(client, key) : client;
      return node !== undefined && this.#heartbeats.get(node)?.isSilent !== true;
    });
  }

  /**
   * Whether the replies to calls get on, of which one has taken `timeout` milliseconds by now. On a Cluster, no node that
   * has to reply may stand still: it is not known which one a call waits for.
   */
  isMoving(timeout: number, client = this.commands): boolean {
    const awaited = nodesOf(client).filter((node) => Progress.of(node).isAwaited);
    const duration = Math.min(timeout / 2, SILENCE);
    const isMoving = (node: Redis) =>
      node.status === "ready" && !Progress.of(node).hasStoodStill(duration);
    return awaited.length > 0 && awaited.every(isMoving);
  }

  /** Asks for the server's time each second, for some seconds to come, to notice when the clock is set. */
  followTime(): void {
    this.#followsUntil = queueTime.now() + FOLLOWS;
  }

  /** Asks for the server's time now. A Cluster has no common time. */
  refreshTime(): void {
    const { background } = this;
    if (!isCluster(background)) this.#heartbeats.get(background)?.ask();
  }

  /** A connection has died silently: asks all others whether they live. */
  suspectAll(): void {
    for (const heartbeat of this.#heartbeats.values()) heartbeat.ask();
    this.blocks.suspectAll();
  }

  get background(): RedisClient {
    this.#background ??= this.#openBackground();
    return this.#background;
  }

  /**
   * Opens a dedicated connection, within `timeout` milliseconds.
   *
   * On a Cluster it goes to the node that serves `key`, or to any node without a key. An `id` becomes part of its name,
   * so that no other connection has that name.
   *
   * Rejects with ioredis's errors.
   *
   * @throws {ClosedError} after {@link close}.
   */
  async open(role: Role, key?: string, timeout = CONNECT, id?: string): Promise<Redis> {
    if (this.#isClosed) throw new ClosedError("the client");
    const { background } = this;
    const { keyPrefix } = background.options;
    const name = connectionName(role, key, id, keyPrefix);
    const connection = await this.#dedicated.connect(
      isCluster(background)
        ? duplicateForOneLife(await nodeOf(background, key), name, keyPrefix)
        : duplicateForOneLife(background, name),
      role,
      timeout,
    );
    if (role === "blocking") await this.#beforeTaking(connection);
    return connection;
  }

  async #beforeTaking(connection: Redis): Promise<void> {
    try {
      await this.#listener.beforeTaking();
    } catch (error) {
      connection.disconnect();
      throw error;
    }
  }

  /**
   * Resolves when Redis has replied to a new connection; on a Cluster, the node that serves `key`. Rejects soon: a
   * Redis that takes longer to reply is slow, and no connection is to blame.
   */
  async probe(key?: string): Promise<void> {
    (await this.open("probe", key, PROBE)).disconnect();
  }

  /** A client that reaches the same server as `connection`, which is blocked. */
  peerOf(connection: Redis): Redis {
    const background = this.background;
    return isCluster(background) ? peerOf(background, connection) : background;
  }

  /** A client that reaches the master which serves `key`. Rejects if the Cluster has none now. */
  async nodeOf(key: string): Promise<Redis> {
    const { background } = this;
    return isCluster(background) ? await nodeOf(background, key) : background;
  }

  /** Ends the connections that take and move messages, but not the one that carries users' calls. */
  abandon(): void {
    for (const heartbeat of this.#heartbeats.values()) heartbeat.close();
    this.#dedicated.end(() => true);
    if (this.#background !== undefined) end(this.#background);
  }

  /** Ends our own connections. Replies that are still under way are lost: finish the work first. */
  close(): void {
    this.#isClosed = true;
    networkTime.clearInterval(this.#looks);
    this.abandon();
    if (!this.#isLent) end(this.commands);
  }

  #superviseCommands(commands: Redis): void {
    this.#reportTroublesOf(commands);
    this.#watch(commands, () => this.#observeTime(commands));
  }

  /** Reports when Redis cannot be reached through a client, and why, and when it can be again. */
  #reportTroublesOf(client: RedisClient): void {
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
      // Not before those have read it whose commands were rejected when the client ended.
      if (client === this.commands) nextTick(() => (this.#isRevived = false));
      this.#unreachable = messageOf(error);
      if (isNotLetIn(error) || error instanceof HandshakeError) Readiness.of(client).fail(error);
      if (!this.#isClosed) work.unreachable(error);
    });
  }

  #openBackground(): RedisClient {
    if (this.#isClosed) throw new ClosedError("the client");
    const background = duplicateForBackground(this.commands);
    this.#backgroundReadiness = Readiness.of(background);
    // Also because ioredis prints the errors of a client that has no listener.
    this.#reportTroublesOf(background);
    // On a Cluster, every queue that opens a connection may wait for "ready".
    background.setMaxListeners(0);
    if (isCluster(background)) {
      background.on("+node", (node: Redis) => {
        this.#noteLosses(node);
        this.#watch(
          node,
          () => node.ping(),
          // If the node is down, it is left as soon as the new slots are known.
          () => background.refreshSlotsCache(),
        );
      });
      this.#endWithNodes(background, (node) => {
        this.#heartbeats.get(node)?.close();
        this.#heartbeats.delete(node);
      });
    } else {
      this.#noteLosses(background);
      this.#watch(background, () => this.#observeTime(background));
      let isFirst = true;
      background.on("ready", () => {
        if (!isFirst) this.#dedicated.follow(background);
        isFirst = false;
      });
    }
    return background;
  }

  #noteLosses(connection: Redis): void {
    let wasEnded = false;
    connection.on("connect", () => {
      wasEnded = false;
      connection.stream.once("end", () => (wasEnded = true));
    });
    connection.on("close", () => {
      this.#listener.onLost(wasEnded);
    });
  }

  /**
   * Ends the dedicated connections to nodes that the Cluster has lost.
   *
   * ioredis says that a node is gone as soon as its connection is. Only the next map of slots tells whether it is: a block
   * on a healthy node that is ended may lose its message.
   */
  #endWithNodes(background: Cluster, onGone: (node: Redis) => void): void {
    const gone = new Set<Redis>();
    background.on("-node", (node: Redis) => {
      onGone(node);
      gone.add(node);
      if (!this.#isClosed) background.refreshSlotsCache();
    });
    background.on("refresh", () => {
      for (const { options } of gone) {
        if (background.nodes("all").some((node) => isSameNode(node.options, options))) continue;
        this.#dedicated.end((connection) => isSameNode(connection.options, options));
      }
      gone.clear();
    });
  }

  /** Resolves when Redis has replied to another connection to the same address. */
  async #probeBeside(connection: Redis): Promise<void> {
    const other = duplicateForOneLife(connection, connectionName("probe"));
    (await this.#dedicated.connect(other, "probe", PROBE)).disconnect();
  }

  /** Gives a connection up once it has died silently; see {@link watchOver}. */
  #watch(connection: Redis, ask: () => Promise<unknown>, onSilence?: () => void): void {
    const beats = {
      ask,
      onSilence: () => {
        onSilence?.();
        this.blocks.suspectAll();
      },
      every: IDLE,
      isWanted: () =>
        this.#listener.troubles.endsWhenHeard ||
        (connection === this.#background && queueTime.now() < this.#followsUntil),
    };
    const probe = () => this.#probeBeside(connection);
    this.#heartbeats.set(connection, watchOver(connection, beats, probe));
  }

  async #observeTime(client: Redis): Promise<void> {
    const sentAt = queueTime.now();
    this.#listener.onTime(await askTime(client), sentAt);
  }
}

function lookAt(client: RedisClient): void {
  for (const node of nodesOf(client)) Progress.of(node).lookSometimes();
}

function nodesOf(client: RedisClient): readonly Redis[] {
  return isCluster(client) ? client.nodes("all") : [client];
}

/** Milliseconds between two questions on a connection that owes no reply. See Redis's `timeout`. */
const IDLE = 60_000;

/** Milliseconds between two looks at a lent client. */
const LOOK = 1000;

/** Heartbeats between the ends of two long blocks. */
const QUIET = 15;

/** Milliseconds. */
const FOLLOWS = 5000;

/** Milliseconds that a dedicated connection may take to become ready. */
const CONNECT = 5000;

/** The same for a connection that only shows whether Redis replies. */
const PROBE = 1500;
