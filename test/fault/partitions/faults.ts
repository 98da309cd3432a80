import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import { expect } from "vitest";
import { killWorkerOf, type NewWorker } from "./killing.ts";
import { CONCURRENCY, type SiteTraffic } from "./site-traffic.ts";
import type { Site } from "./site.ts";
import type { Loss, Wire } from "./wire.ts";

/** A site, a plain and a reliable queue in partitions on it, and the traffic on the wire between. */
export interface Scene {
  readonly site: Site;
  readonly wire: Wire;
  readonly both: readonly SiteTraffic[];
  readonly newWorker: NewWorker;
}

/** Something that goes wrong under traffic. */
export interface Fault {
  readonly name: string;
  /** Causes the fault. Resolves when everything is well again. */
  readonly happen: (scene: Scene) => Promise<void>;
  /**
   * Redis replies that calls may reject with and that errors may name. An error without a reply means a lost
   * connection.
   */
  readonly replies: readonly string[];
  /** Whether clients may fail to notice it, so that nothing is reported. */
  readonly isUnnoticed?: boolean;
  /** Milliseconds by which delays are longer meanwhile. */
  readonly moreDelay?: number;
  /**
   * The messages that the fault may have cost, as documented: lost plain messages, or reliable ones with an attempt
   * that nobody saw.
   */
  readonly mayCost?: (traffic: SiteTraffic, scene: Scene) => readonly number[];
}

const LOSSES: readonly Loss[] = ["commands", "background", "blocking"];

export const FAULTS: readonly Fault[] = [
  {
    name: "SCRIPT FLUSH everywhere, again and again",
    happen: ({ site }) =>
      again(6, 50, async () => {
        for (const { redis } of await site.masters()) await redis.script("FLUSH");
      }),
    replies: [],
    isUnnoticed: true,
  },
  {
    name: "connections that hold no message are cut, again and again",
    happen: ({ site }) =>
      again(3, 150, async () => {
        for (const { redis } of await site.masters()) await cutOthersThanBlocking(redis);
      }),
    replies: [],
    moreDelay: 400,
  },
  {
    name: "every connection is cut, again and again",
    happen: ({ site }) =>
      again(3, 150, async () => {
        for (const { redis } of await site.masters()) {
          for (const type of ["pubsub", "normal"]) await redis.call("CLIENT", "KILL", "TYPE", type);
        }
      }),
    replies: [],
    moreDelay: 400,
    // Messages that Redis had popped and could not send any more.
    mayCost: notSent,
  },
  {
    name: "replies are lost",
    happen: async ({ wire }) => {
      for (let i = 0; i < 4; i++) {
        for (const loss of LOSSES) {
          expect([loss, await wire.loseReply(loss)]).toEqual([loss, true]);
          await sleep(50);
        }
      }
    },
    replies: [],
    moreDelay: 400,
    // Messages whose replies the test lost, and messages that Redis had popped by then for the same connection.
    mayCost: notSent,
  },
  {
    name: "memory is full for a second",
    happen: async ({ site, both }) => {
      const masters = await site.masters();
      const setMemory = (bytes: string) =>
        Promise.all(masters.map(({ redis }) => redis.config("SET", "maxmemory", bytes)));
      await Promise.all(both.map((traffic) => traffic.offerMany(50, 500)));
      await setMemory("1");
      await sleep(1000);
      await setMemory("0");
      for (const { rejections } of both) expect(rejections).not.toEqual([]);
    },
    replies: ["OOM"],
    isUnnoticed: true,
  },
  {
    name: "a master stands still for 2 s",
    happen: async ({ site }) => {
      const masters = await site.masters();
      const { server } = masters[Math.floor(Math.random() * masters.length)] as (typeof masters)[0];
      server.pause();
      await sleep(2000);
      server.resume();
    },
    replies: [],
  },
  {
    name: "clients are closed",
    happen: ({ both }) =>
      again(2, 150, async () => {
        await Promise.all(both.map((traffic) => traffic.replaceClients()));
      }),
    replies: [],
  },
  {
    name: "a process is killed",
    happen: async (scene) => {
      await Promise.all(
        scene.both.map((traffic) => killWorkerOf(traffic, scene.site, scene.newWorker)),
      );
    },
    replies: [],
    // Messages that it held, and those on their way to it: at most one more from each partition.
    mayCost: ({ kind, wrongs, abroad }, { site }) =>
      wrongs[kind === "plain" ? "lost" : "attempts"].slice(
        0,
        CONCURRENCY + site.partitions - abroad.size,
      ),
  },
  {
    name: "a master is killed, and its replica takes over",
    happen: async ({ site, both }) => {
      await site.mend();
      for (const traffic of both) await traffic.settle();
      for (const traffic of both) await traffic.offerMany(40, 1500);
      await site.handOver();
      const replacing = site.replaceOne();
      for (const traffic of both) traffic.resume();
      await replacing;
      for (const traffic of both) await traffic.isFlowing(50);
    },
    replies: ["CLUSTERDOWN", "READONLY", "MOVED", "LOADING"],
  },
];

/** Lost plain messages that never reached a client. */
function notSent({ kind, wrongs }: SiteTraffic, { wire }: Scene): number[] {
  return kind === "plain" ? wrongs.lost.filter((n) => !wire.sent.has(`p${n};`)) : [];
}

/** A message on its way to a blocked connection is in no other place, so these connections stay. */
async function cutOthersThanBlocking(redis: Redis): Promise<void> {
  const self = String(await redis.client("ID"));
  for (const type of ["normal", "pubsub"]) {
    const list = String(await redis.call("CLIENT", "LIST", "TYPE", type)).split("\n");
    // One that has not given its name yet may block by the time at which it is killed.
    const spared = / name=delayline:blocking| cmd=(NULL|hello) /;
    const others = list.filter((one) => !spared.test(one));
    const ids = others.flatMap((one) => /^id=(\d+)/.exec(one)?.[1] ?? []);
    await Promise.all(ids.filter((id) => id !== self).map((id) => redis.client("KILL", "ID", id)));
  }
}

async function again(count: number, pause: number, act: () => Promise<void>): Promise<void> {
  for (let i = 0; i < count; i++) {
    await act();
    await sleep(pause);
  }
}
