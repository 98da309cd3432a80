import type { DelaylineError } from "../errors.ts";
import type { BusyWait } from "../time/busy-wait.ts";
import { Expiries } from "../time/expiries.ts";
import { askTime, ServerClock } from "../time/server-clock.ts";
import { Steps } from "../time/steps.ts";
import type { Blocks } from "./blocks.ts";
import { isCluster } from "./client.ts";
import type { RedisConnectionOptions } from "./address.ts";
import { Connections } from "./connections.ts";
import { Fuse, type FuseListener } from "./fuse.ts";
import type { LentClient } from "./lent-client.ts";
import { Subscriber } from "./subscriber.ts";
import { Troubles, type TroublesListener } from "./troubles.ts";
import { networkTime } from "../time/runtime.ts";

/** The servers of a client. A queue without partitions is on the first. */
export type Servers = readonly [Server, ...Server[]];

/** What a client's options say of time; in milliseconds. */
export interface ServerLimits {
  readonly callTimeout: number;
  readonly unreachableTimeout: number;
  readonly heartbeat: number;
  readonly busyWait: BusyWait;
}

/** A server, or a Cluster, that a client has open. All its queues there share what it has running for it. */
export class Server {
  readonly connections: Connections;
  readonly subscriber: Subscriber;
  /** The estimate of the server's clock. Each node of a Cluster has a clock of its own: see `Queue.clock`. */
  readonly clock = new ServerClock();
  readonly troubles: Troubles;
  /** Awaited before anything is moved or taken. */
  readonly fuse: Fuse;
  /** The time limit of every awaited call. */
  readonly expiries: Expiries;
  /** When routine looks are due. */
  readonly steps = new Steps();
  /** Milliseconds for which a task still tries what has to be done before the client is closed. */
  readonly unreachableTimeout: number;
  /** What this client may spend to be punctual, on all servers together. */
  readonly busyWait: BusyWait;
  /** Reports an error that no caller awaits. */
  readonly report: (error: DelaylineError) => void;
  /** The offers under way to each queue. All of them share one connection. */
  readonly offers = new Set<{ closeGate(): void }>();

  /**
   * Nothing is connected yet.
   *
   * @throws {TypeError} if the address is not legal.
   */
  constructor(
    redis: string | RedisConnectionOptions | LentClient,
    limits: ServerLimits,
    listener: TroublesListener & Partial<FuseListener>,
  ) {
    const { onFallBack = () => {}, beforeGoingOn = () => Promise.resolve() } = listener;
    this.troubles = new Troubles(listener);
    this.connections = new Connections(redis, limits.heartbeat, {
      onTime: (serverTime, sentAt) => {
        this.clock.observe(serverTime, sentAt);
        this.troubles.heard();
      },
      // A connection that was not ended on purpose may have been dead for long.
      onLost: (wasEnded) => this.fuse.lost(networkTime.now() - (wasEnded ? 0 : this.clock.age)),
      beforeTaking: () => this.fuse.passed(),
      troubles: this.troubles,
    });
    this.fuse = new Fuse({ onFallBack, beforeGoingOn }, { isWhole: !this.isCluster });
    this.subscriber = new Subscriber(this.connections, this.troubles);
    this.expiries = new Expiries(limits.callTimeout);
    this.unreachableTimeout = limits.unreachableTimeout;
    this.busyWait = limits.busyWait;
    this.report = listener.report;
  }

  /** How long blocks may last. */
  get blocks(): Blocks {
    return this.connections.blocks;
  }

  get isCluster(): boolean {
    return isCluster(this.connections.commands);
  }

  /**
   * Returns the clock of the server, or of any node of the Cluster (epoch ms).
   *
   * Rejects with ioredis's errors.
   */
  async time(signal?: AbortSignal): Promise<number> {
    const limit = { expiries: this.expiries, signal };
    return await this.connections.call("commands", limit, async (redis) => {
      const ask = () => askTime(redis);
      // The clocks of a Cluster's nodes differ, so none is estimated here.
      if (isCluster(redis)) return await ask();
      await this.clock.ready(ask);
      return this.clock.now();
    });
  }

  /** Ends the connections. From now on failures are expected, and none is reported. */
  close(): void {
    this.troubles.close();
    this.subscriber.close();
    this.connections.close();
  }
}
