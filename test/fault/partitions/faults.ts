import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import { expect } from "vitest";
import type { Child } from "../../../scripts/child/child.ts";
import { startChild } from "../../helpers/child.ts";
import { eventually } from "../../helpers/eventually.ts";
import { bundle } from "../workers/bundle.ts";
import type { SiteWorkerNote, SiteWorkerTask } from "../workers/site-worker.ts";
import { CONCURRENCY, SETTINGS, type SiteTraffic } from "./site-traffic.ts";
import type { Site } from "./site.ts";
import type { Loss, Wire } from "./wire.ts";

/** A site, a plain and a reliable queue in partitions on it, and what is on the wire between. */
export interface Scene {
  readonly site: Site;
  readonly wire: Wire;
  readonly both: readonly SiteTraffic[];
  /** A program that handles messages; it is loaded, and waits for a task. */
  readonly newWorker: () => Promise<Child<unknown>>;
}

/** Something that goes wrong under traffic. */
export interface Fault {
  readonly name: string;
  /** Does it; all is well again when it resolves. */
  readonly happen: (scene: Scene) => Promise<void>;
  /** Replies of Redis that calls may reject with, and that errors may name. Those without a reply are a lost connection. */
  readonly replies: readonly string[];
  /** Whether clients can be unaware of it: then nothing is reported. */
  readonly isUnnoticed?: boolean;
  /** Milliseconds that messages are delayed longer meanwhile. */
  readonly moreDelay?: number;
  /**
   * Which messages it may have cost, as is documented, of those plain ones that were lost, or those reliable ones of which an attempt
   * was seen by nobody.
   */
  readonly mayCost?: (
    wrong: readonly number[],
    scene: Scene,
    traffic: SiteTraffic,
  ) => readonly number[];
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
    // What Redis had popped, and could not send any more.
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
    // What we have lost, and what Redis had popped by then for the same connection.
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
      const refused = both.map(({ fortunes }) => fortunes.some(({ rejection }) => rejection));
      expect(refused).toEqual([true, true]);
    },
    replies: ["OOM"],
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
    isUnnoticed: true,
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
      await Promise.all(scene.both.map((traffic) => killWorkerOf(traffic, scene)));
    },
    replies: [],
    // What it had in its hands, and what was on its way to it: one more from each partition at most.
    mayCost: (wrong, { site }, { abroad }) =>
      wrong.slice(0, CONCURRENCY + site.partitions - abroad.size),
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

/** Has another process work beside the others, and kills it while it has messages in its hands. */
async function killWorkerOf(traffic: SiteTraffic, { site, newWorker }: Scene): Promise<void> {
  const worker = await newWorker();
  const { kind, name, abroad } = traffic;
  abroad.clear();
  // Those that it had are back soon.
  const settings = { ...SETTINGS, visibilityTimeout: 1000, partitions: site.partitions };
  const { address } = site;
  const own =
    kind === "plain" ? { codec: settings.codec, partitions: settings.partitions } : settings;
  const task: SiteWorkerTask = { address, name, kind, concurrency: CONCURRENCY, settings: own };
  await worker.send(task as never);
  let count = 0;
  const listening = (async () => {
    for (;;) {
      const [n, what, attempt] = (await worker.next(Array.isArray, 20_000)) as SiteWorkerNote;
      traffic.note(n, what, attempt);
      count++;
    }
  })().catch(() => {});
  await eventually(() => count > 20 && abroad.size > 2, {
    within: 20_000,
    what: `a process has ${kind} messages in its hands`,
  });
  await worker.kill("SIGKILL");
  await listening;
}

/** What never reached a client, of the plain messages. */
function notSent(wrong: readonly number[], { wire }: Scene, { kind }: SiteTraffic): number[] {
  return kind === "plain" ? wrong.filter((n) => !wire.sent.has(`p${n};`)) : [];
}

/** A message that is on its way to a blocked connection is nobody else's. */
async function cutOthersThanBlocking(redis: Redis): Promise<void> {
  const self = String(await redis.client("ID"));
  for (const type of ["normal", "pubsub"]) {
    const list = String(await redis.call("CLIENT", "LIST", "TYPE", type)).split("\n");
    const others = list.filter((one) => !one.includes(" name=delayline:blocking"));
    const ids = others.flatMap((one) => /^id=(\d+)/.exec(one)?.[1] ?? []);
    for (const id of ids) if (id !== self) await redis.client("KILL", "ID", id);
  }
}

async function again(count: number, pause: number, act: () => Promise<void>): Promise<void> {
  for (let i = 0; i < count; i++) {
    await act();
    await sleep(pause);
  }
}

/** How workers are started: from one file, which loads sooner. */
export async function workers(): Promise<() => Promise<Child<unknown>>> {
  const program = await bundle(new URL("../workers/site-worker.ts", import.meta.url));
  return async () => {
    const worker = startChild(program);
    await worker.next((word) => word === "loaded");
    return worker;
  };
}
