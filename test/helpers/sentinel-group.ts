import { once } from "node:events";
import { Redis, type RedisOptions } from "ioredis";
import { onTestFinished } from "vitest";
import { eventually } from "./eventually.ts";
import { OwnServer } from "./own-server.ts";
import { spawnSentinel } from "./sentinel.ts";
import { TcpProxy } from "./tcp-proxy.ts";

const NAME = "delayline";

/** Milliseconds that a master may be silent while no switch is wanted. On a busy machine it is silent for seconds. */
const PATIENT = 60_000;

/** One of the group's Redis servers, and the two networks by which it is reached. */
export interface Member {
  readonly server: OwnServer;
  /** Between the servers and the Sentinels. */
  readonly inner: TcpProxy;
  /** Between clients and the server. */
  readonly outer: TcpProxy;
}

/** A switch to another master, as a Sentinel announced it. */
export interface Switch {
  readonly from: Member;
  readonly to: Member;
  /** When it was announced, by `performance.now()`. */
  readonly at: number;
}

/**
 * A master, two replicas and three Sentinels, for one test alone.
 *
 * Servers and Sentinels reach each other through one set of proxies, and clients reach the servers through another. So
 * the master can be cut off from its group, from its clients, or from both.
 */
export class SentinelGroup {
  readonly #members: readonly Member[];
  readonly #sentinelPorts: readonly number[];

  private constructor(members: readonly Member[], sentinelPorts: readonly number[]) {
    this.#members = members;
    this.#sentinelPorts = sentinelPorts;
  }

  /** Resolves when all know each other. Ends with the test. */
  static async start(): Promise<SentinelGroup> {
    const members = await Promise.all([1, 2, 3].map(startMember));
    const [master, ...replicas] = members as [Member, ...Member[]];
    await Promise.all(replicas.map((replica) => follow(replica, master)));
    const ports = await Promise.all([1, 2, 3].map(() => startSentinel(master.inner.port)));
    const group = new SentinelGroup(members, ports);
    for (const port of ports) await knowsAll(port);
    return group;
  }

  /** Options for a client that finds the master through the Sentinels. */
  get options(): Pick<RedisOptions, "sentinels" | "name" | "natMap"> {
    const natMap: Record<string, { host: string; port: number }> = {};
    for (const { inner, outer } of this.#members) {
      natMap[`127.0.0.1:${inner.port}`] = { host: "127.0.0.1", port: outer.port };
    }
    const sentinels = this.#sentinelPorts.map((port) => ({ host: "127.0.0.1", port }));
    return { sentinels, name: NAME, natMap };
  }

  /** The master that the Sentinels name. */
  async master(): Promise<Member> {
    return await this.#ask(async (sentinel) => {
      const [, port] = (await sentinel.call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME)) as [
        string,
        string,
      ];
      return this.#memberAt(Number(port));
    });
  }

  /** Asks for a failover as an operator does for maintenance. */
  async failOver(): Promise<void> {
    await this.#ask(async (sentinel) => {
      await sentinel.call("SENTINEL", "FAILOVER", NAME);
    });
  }

  /**
   * Waits for the next switch to another master. Call it just before causing the switch: from this call until the switch
   * the Sentinels replace a master that does not reply; at other times they are patient.
   */
  async nextSwitch(): Promise<{ readonly switched: Promise<Switch> }> {
    await this.#setDownAfter(1000);
    const sentinel = this.#connect(0);
    await sentinel.subscribe("+switch-master");
    const switched = once(sentinel, "message").then(
      async ([, message]: string[]): Promise<Switch> => {
        const at = performance.now();
        sentinel.disconnect();
        await this.#setDownAfter(PATIENT);
        // "<name> <old ip> <old port> <new ip> <new port>"
        const words = (message ?? "").split(" ");
        return { from: this.#memberAt(Number(words[2])), to: this.#memberAt(Number(words[4])), at };
      },
    );
    return { switched };
  }

  async #setDownAfter(milliseconds: number): Promise<void> {
    await Promise.all(
      this.#sentinelPorts.map(async (_, i) => {
        const sentinel = this.#connect(i);
        await sentinel.call("SENTINEL", "SET", NAME, "down-after-milliseconds", milliseconds);
        sentinel.disconnect();
      }),
    );
  }

  async #ask<Answer>(question: (sentinel: Redis) => Promise<Answer>): Promise<Answer> {
    const sentinel = this.#connect(0);
    try {
      return await question(sentinel);
    } finally {
      sentinel.disconnect();
    }
  }

  #connect(i: number): Redis {
    return connect(this.#sentinelPorts[i] ?? 0);
  }

  #memberAt(port: number): Member {
    const member = this.#members.find(({ inner }) => inner.port === port);
    if (member === undefined) throw new Error(`no member of the group has port ${port}`);
    return member;
  }
}

async function startMember(): Promise<Member> {
  const args = ["--repl-diskless-sync-delay", "0", "--repl-timeout", "10"];
  const server = await OwnServer.start({ args });
  onTestFinished(() => server.stop());
  const inner = await TcpProxy.start(server.url);
  onTestFinished(() => inner.close());
  const outer = await TcpProxy.start(server.url);
  onTestFinished(() => outer.close());
  const redis = connect(server.port);
  await redis.config("SET", "replica-announce-ip", "127.0.0.1");
  await redis.config("SET", "replica-announce-port", String(inner.port));
  redis.disconnect();
  return { server, inner, outer };
}

async function follow(replica: Member, master: Member): Promise<void> {
  const redis = connect(replica.server.port);
  await redis.call("REPLICAOF", "127.0.0.1", master.inner.port);
  await eventually(async () => (await redis.info()).includes("master_link_status:up"), {
    within: 20_000,
    what: "a replica is in step with its master",
  });
  redis.disconnect();
}

/** Starts a Sentinel; two of three have to agree that a master is down. */
function startSentinel(masterPort: number): Promise<number> {
  return spawnSentinel([
    `sentinel monitor ${NAME} 127.0.0.1 ${masterPort} 2`,
    `sentinel down-after-milliseconds ${NAME} ${PATIENT}`,
    `sentinel failover-timeout ${NAME} 5000`,
    `sentinel parallel-syncs ${NAME} 2`,
  ]);
}

async function knowsAll(port: number): Promise<void> {
  const sentinel = connect(port);
  await eventually(
    async () => {
      const replicas = (await sentinel.call("SENTINEL", "REPLICAS", NAME)) as unknown[];
      const others = (await sentinel.call("SENTINEL", "SENTINELS", NAME)) as unknown[];
      return replicas.length === 2 && others.length === 2;
    },
    { within: 30_000, what: "a Sentinel knows the replicas and the other Sentinels" },
  );
  sentinel.disconnect();
}

function connect(port: number): Redis {
  return new Redis(port, "127.0.0.1").on("error", () => {});
}
