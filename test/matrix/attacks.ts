import { setTimeout as sleep } from "node:timers/promises";
import { PartitionNames } from "../../src/partitions/ring/ring.ts";
import { moveSlotAtOnce, moveSlotOf } from "../helpers/cluster.ts";
import type { TestLine } from "../helpers/delayline.ts";
import type { Member, Site } from "../fault/partitions/site.ts";
import type { Loss, Wire } from "../fault/partitions/wire.ts";
import type { AttackName } from "../../scripts/matrix/cells.ts";
import { now } from "./history.ts";
import type { Party } from "./party.ts";
import { forgetSince, sizeOfLog } from "./power-loss.ts";
import { isWhole, type Target } from "./task.ts";

/** What an attack has to do with. */
export interface Scene {
  readonly site: Site;
  readonly wire: Wire;
  readonly party: Party;
  readonly target: Target;
  /** A client that only looks, and changes partitions. */
  readonly line: TestLine;
}

/** How a server that is killed keeps its data. */
type Persistence = "always" | "everysec" | "none";

export interface Attack {
  /** Strikes, the n-th time. Resolves when whatever was broken works again. */
  readonly strike: (scene: Scene, n: number) => Promise<unknown>;
  /** Milliseconds of rest between two strikes. Without it there is one only. */
  readonly every?: number;
  /**
   * Milliseconds by which delays are longer, so that an offer that is sent again finds its first copy, and messages wait
   * in Redis when it loses some.
   */
  readonly moreDelay?: number;
  readonly persistence?: Persistence;
  /** Milliseconds by which the clocks of the producer and the workers are wrong. */
  readonly shifts?: readonly number[];
  /** Whether every byte arrives: then that a message was on its way when a connection ended excuses nothing. */
  readonly isHealthy?: boolean;
  /** The size of each 400th payload, in bytes. Defaults to that of the others. */
  readonly largeBytes?: number;
  /** Whether a process may fail to reach Redis for as long as a lease lasts. */
  readonly breaksConnections?: boolean;
}

/** Milliseconds that a worker stands still: longer than both of its leases. */
const STALL = 4000;

/** Milliseconds that a server stands still: longer than the leases of its consumers. */
const PAUSE = 5000;

/** Bytes a second that a slow link carries: a large payload takes four seconds. */
const SLOW = 150_000;

/** Milliseconds. */
const SLOW_FOR = 8000;

const both = (rate: number) => ({ request: rate, reply: rate });

/** Milliseconds of writes that are lost with the power. */
const UNSAVED = 1000;

/** Milliseconds of writes that a replica does not get. */
const CUT_OFF = 1000;

/** Milliseconds after a switch in which replies of the old master may still arrive. */
const SWITCHING = 1500;

/** Milliseconds before a strike in which a replica may lag: the machine is busy. */
const LAG = 500;

const HOUR = 3_600_000;

const COUNTS = [6, 3, 5, 2];

const LOSSES: readonly Loss[] = ["commands", "background", "blocking"];

export const STRIKES: Readonly<Record<AttackName, Attack>> = {
  "workers-killed": {
    every: 500,
    strike: ({ party }) => party.killWorker(),
  },
  "producers-killed": {
    every: 300,
    strike: ({ party }) => party.killProducer(),
  },
  "workers-stalled": { strike: ({ party }) => party.stallWorker(STALL) },
  "connections-cut": {
    breaksConnections: true,
    every: 250,
    moreDelay: 600,
    strike: async ({ site }) => {
      for (const { redis } of await site.masters()) {
        for (const type of ["pubsub", "normal"]) await redis.call("CLIENT", "KILL", "TYPE", type);
      }
    },
  },
  "replies-lost": {
    breaksConnections: true,
    every: 60,
    moreDelay: 600,
    strike: ({ wire }, n) => wire.loseReply(LOSSES[n % LOSSES.length] as Loss),
  },
  "link-slow": {
    isHealthy: true,
    largeBytes: 600_000,
    strike: async ({ site }) => {
      for (const rate of [SLOW, Infinity]) {
        for (const { proxy } of site.members) Object.assign(proxy.rate, both(rate));
        if (rate === SLOW) await sleep(SLOW_FOR);
      }
    },
  },
  "scripts-flushed": {
    every: 30,
    strike: async ({ site }) => {
      for (const { redis } of await site.masters()) await redis.script("FLUSH");
    },
  },
  "clocks-wrong": {
    strike: async () => {},
    shifts: [HOUR, -HOUR, HOUR],
  },
  "partitions-changed": {
    every: 300,
    strike: ({ line, target }, n) =>
      line.setPartitions(target.name, COUNTS[n % COUNTS.length] as number),
  },
  "slots-moved": {
    breaksConnections: true,
    every: 300,
    strike: async ({ site, target }) => {
      const masters = (await site.masters()).map(({ server }) => server);
      await moveSlotOf(masters, keyOf(target));
    },
  },
  "slots-moved-at-once": {
    breaksConnections: true,
    every: 300,
    strike: async ({ site, target }) => {
      const masters = (await site.masters()).map(({ server }) => server);
      await moveSlotAtOnce(masters, keyOf(target));
    },
  },
  "server-stalled": {
    breaksConnections: true,
    strike: async ({ site }) => {
      const { server } = site.members[0] as Member;
      server.pause();
      await sleep(PAUSE);
      server.resume();
    },
  },
  "server-killed-always": {
    breaksConnections: true,
    every: 700,
    moreDelay: 1500,
    persistence: "always",
    strike: (scene) => killServer(scene),
  },
  "server-killed-everysec": {
    breaksConnections: true,
    every: 700,
    moreDelay: 1500,
    persistence: "everysec",
    strike: (scene) => killServer(scene),
  },
  "power-lost-everysec": {
    breaksConnections: true,
    moreDelay: 1500,
    persistence: "everysec",
    strike: async (scene) => {
      const { server } = scene.site.members[0] as Member;
      const from = now();
      const size = await sizeOfLog(server.directory);
      await sleep(UNSAVED);
      await killServer(scene, () => forgetSince(server.directory, size));
      scene.party.history.rollbacks.push({ from, to: now() });
    },
  },
  "server-killed-unsaved": {
    breaksConnections: true,
    moreDelay: 1500,
    persistence: "none",
    strike: async (scene) => {
      await killServer(scene);
      scene.party.history.rollbacks.push({ from: 0, to: now() });
    },
  },
  "master-replaced": {
    breaksConnections: true,
    moreDelay: 1500,
    strike: (scene) => replace(scene, LAG, (master) => scene.site.failOver(master)),
  },
  "master-killed": {
    breaksConnections: true,
    moreDelay: 1500,
    strike: (scene) => replace(scene, LAG, (master) => scene.site.replaceOne(master)),
  },
  "master-killed-cut-off": {
    breaksConnections: true,
    moreDelay: 1500,
    strike: async (scene) => {
      await replace(scene, LAG, async (master) => {
        const mend = await scene.site.sever(master);
        await sleep(CUT_OFF);
        await scene.site.replaceOne(master);
        await mend();
      });
    },
  },
};

/** Kills the server (SIGKILL), and starts it again with what it has saved. */
async function killServer(
  { site }: Scene,
  meanwhile: () => Promise<void> = async () => {},
): Promise<void> {
  const { server, proxy } = site.members[0] as Member;
  await server.kill();
  proxy.refuse();
  proxy.cut();
  await meanwhile();
  await server.restart();
  await proxy.accept();
}

/** Another server takes the place of the master; what that had not replicated is forgotten. */
async function replace(
  { site, target, party }: Scene,
  before: number,
  act: (master: Member) => Promise<void>,
): Promise<void> {
  const master = await site.masterOf(keyOf(target));
  const from = now() - before;
  await act(master);
  party.history.rollbacks.push({ from, to: now() + SWITCHING });
}

/** A key of the queue. Partitions have several masters; it belongs to one of them. */
function keyOf({ name, queue }: Target): string {
  return isWhole(queue) ? `{${name}}` : new PartitionNames(name).at(1);
}
