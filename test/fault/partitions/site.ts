import { Redis } from "ioredis";
import { startCluster } from "../../helpers/cluster.ts";
import { eventually } from "../../helpers/eventually.ts";
import { startOwnServer, type OwnServer, type OwnServerOptions } from "../../helpers/own-server.ts";
import { newRedis } from "../../helpers/redis.ts";
import { startSentinelPair } from "../../helpers/sentinel.ts";
import { startProxy, type TcpProxy } from "../../helpers/tcp-proxy.ts";
import type { SiteAddress } from "./site-address.ts";

/** A server of a site. The servers know each other by their own addresses; clients connect through its proxy. */
export interface Member {
  readonly server: OwnServer;
  readonly proxy: TcpProxy;
  /** For the test's own queries; not through the proxy. */
  readonly redis: Redis;
}

/** Milliseconds that a master may be silent where no failover is wanted. */
const PATIENT = 60_000;

/** Milliseconds after which a dead master is replaced. */
const IMPATIENT = 1000;

/**
 * Several masters with a replica each, or a single server, for one test alone. No master is replaced but by
 * {@link Site.replaceOne} and {@link Site.failOver}.
 */
export class Site {
  readonly members: readonly Member[];
  readonly address: SiteAddress;
  /** The more partitions, the longer it takes to query all of them. */
  readonly partitions: number;
  readonly #setPatience: (milliseconds: number) => Promise<unknown>;
  readonly #failOver: (master: Member) => Promise<void>;
  readonly #dead = new Set<Member>();

  private constructor(site: {
    readonly members: readonly Member[];
    readonly address: SiteAddress;
    readonly partitions: number;
    readonly setPatience: (milliseconds: number) => Promise<unknown>;
    readonly failOver: (master: Member) => Promise<void>;
  }) {
    this.members = site.members;
    this.address = site.address;
    this.partitions = site.partitions;
    this.#setPatience = site.setPatience;
    this.#failOver = site.failOver;
  }

  /** A single server. */
  static async standalone(options?: OwnServerOptions): Promise<Site> {
    const member = await newMember(await startOwnServer(options));
    return new Site({
      members: [member],
      address: { groups: [{ host: "127.0.0.1", port: member.proxy.port }] },
      partitions: 4,
      setPatience: async () => {},
      failOver: async () => {},
    });
  }

  /** Sentinel set-ups, in one list. */
  static async ofSentinels(names: readonly string[] = ["one", "two"]): Promise<Site> {
    const pairs = await Promise.all(names.map((name) => startSentinelPair(name, PATIENT)));
    const members = await Promise.all(
      pairs.flatMap(({ master, replica }) => [master, replica]).map(newMember),
    );
    const groups = pairs.map(({ sentinelPort }, i) => ({
      sentinels: [{ host: "127.0.0.1", port: sentinelPort }],
      name: names[i] as string,
      natMap: natMapOf(members),
    }));
    const sentinels = pairs.map(({ sentinelPort }) =>
      newRedis(`redis://127.0.0.1:${sentinelPort}`),
    );
    const setPatience = (milliseconds: number) =>
      Promise.all(
        sentinels.map((sentinel, i) =>
          sentinel.call("SENTINEL", "SET", `${names[i]}`, "down-after-milliseconds", milliseconds),
        ),
      );
    const failOver = async (master: Member) => {
      const group = Math.floor(members.indexOf(master) / 2);
      await sentinels[group]?.call("SENTINEL", "FAILOVER", `${names[group]}`);
    };
    return new Site({ members, address: { groups }, partitions: 4, setPatience, failOver });
  }

  /** A Cluster of three masters. */
  static async ofCluster(): Promise<Site> {
    const { nodes, replicas } = await startCluster({ withReplicas: true, isWhole: false });
    const members = await Promise.all([...nodes, ...replicas].map(newMember));
    const entries = members.map(({ proxy: { port } }) => ({ host: "127.0.0.1", port }));
    const setPatience = (milliseconds: number) =>
      Promise.all(
        members
          .filter(({ redis }) => redis.status === "ready")
          .map(({ redis }) => redis.config("SET", "cluster-node-timeout", milliseconds)),
      );
    await setPatience(PATIENT);
    const cluster = { nodes: entries, natMap: natMapOf(members) };
    const failOver = async (master: Member) => {
      await (await replicaOf(master, members)).redis.cluster("FAILOVER");
    };
    return new Site({ members, address: { cluster }, partitions: 6, setPatience, failOver });
  }

  /** The servers that are alive. */
  get living(): readonly Member[] {
    return this.members.filter((member) => !this.#dead.has(member));
  }

  async masters(): Promise<Member[]> {
    const roles = await Promise.all(
      this.living.map(async (member) => [member, (await member.redis.role())[0]] as const),
    );
    return roles.flatMap(([member, role]) => (role === "master" ? [member] : []));
  }

  /** Resolves when the replicas have everything written so far. */
  async handOver(): Promise<void> {
    for (const { redis } of await this.masters()) {
      // WAIT covers the writes of its own connection, and with them everything before.
      await eventually(async () => (await redis.set(randomKey(), "", "EX", 10)) === "OK");
      await eventually(async () => (await redis.wait(1, 1000)) === 1);
    }
  }

  /** The master that serves a key. */
  async masterOf(key: string): Promise<Member> {
    const masters = await this.masters();
    if (this.address.cluster === undefined) return masters[0] as Member;
    const { redis } = masters[0] as Member;
    const [slot, ranges] = await Promise.all([
      redis.cluster("KEYSLOT", key),
      redis.cluster("SLOTS"),
    ]);
    const [, , master] = ranges.find(([first, last]) => first <= slot && slot <= last) ?? [];
    return masters.find(({ server }) => server.port === master?.[1]) as Member;
  }

  /** Lets a replica take a master's place, as an operator does. Resolves when it has. */
  async failOver(master: Member): Promise<void> {
    const replica = await replicaOf(master, this.members);
    await this.#failOver(master);
    const hasTakenOver = async () => (await replica.redis.role())[0] === "master";
    await eventually(hasTakenOver, { within: 30_000, what: "the replica has taken over" });
  }

  /**
   * Cuts a master's replica off, so that it receives no more writes. It can still take the master's place. Returns a
   * function that lets it follow again.
   */
  async sever(master: Member): Promise<() => Promise<void>> {
    const replica = await replicaOf(master, this.members);
    // A master without a password refuses a replica that sends one.
    await replica.redis.config("SET", "masterauth", "wrong");
    await master.redis.call("CLIENT", "KILL", "TYPE", "replica");
    return async () => void (await replica.redis.config("SET", "masterauth", ""));
  }

  /**
   * Kills a master (SIGKILL), any one by default. Resolves when a replica has taken its place. Writes that were not
   * replicated are lost.
   */
  async replaceOne(master?: Member): Promise<void> {
    const masters = await this.masters();
    const victim = master ?? masters[Math.floor(Math.random() * masters.length)]!;
    await this.#setPatience(IMPATIENT);
    this.#dead.add(victim);
    await victim.server.kill();
    victim.proxy.refuse();
    victim.proxy.cut();
    await eventually(async () => (await this.masters()).length === masters.length, {
      within: 30_000,
      what: "a replica has taken over",
    });
    await this.#setPatience(PATIENT);
  }

  /** Starts the dead servers again, as replicas. Resolves when each master has one in step. */
  async mend(): Promise<void> {
    for (const member of this.#dead) {
      // The bus of a Cluster node has a port that others may be given while it is free.
      await eventually(() => member.server.restart(), { within: 60_000 });
      await member.proxy.accept();
      this.#dead.delete(member);
      // Members of a Cluster know their role. Sentinels would assign it only after ten seconds.
      const partner = this.members[this.members.indexOf(member) ^ 1] as Member;
      if (this.address.groups) await member.redis.replicaof("127.0.0.1", partner.server.port);
    }
    await eventually(
      async () => (await this.#followers()) === Math.floor(this.members.length / 2),
      {
        within: 60_000,
        what: "each master has its replica again",
      },
    );
  }

  async #followers(): Promise<number> {
    const infos = await Promise.all(this.living.map(({ redis }) => redis.info("replication")));
    return infos.filter((info) => info.includes("master_link_status:up")).length;
  }
}

async function replicaOf(master: Member, members: readonly Member[]): Promise<Member> {
  const info = await master.redis.info("replication");
  const port = Number(/^slave0:.*\bport=(\d+)/m.exec(info)?.[1]);
  const replica = members.find(({ server }) => server.port === port);
  if (replica === undefined) throw new Error("the master has no replica");
  return replica;
}

async function newMember(server: OwnServer): Promise<Member> {
  const redis = newRedis(server.url, { retryStrategy: () => 100 });
  return { server, proxy: await startProxy(server.url), redis };
}

function natMapOf(members: readonly Member[]) {
  return Object.fromEntries(
    members.map(({ server, proxy }) => [
      `127.0.0.1:${server.port}`,
      { host: "127.0.0.1", port: proxy.port },
    ]),
  );
}

/** On a Cluster a third of them belong to one master. */
function randomKey(): string {
  return `handed-over:${Math.random()}`;
}
