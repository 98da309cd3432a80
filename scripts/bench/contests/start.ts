import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { BenchServer } from "../bench-server.ts";
import { median } from "../median.ts";
import type { PeerName } from "../peers/load.ts";
import type { Contest } from "../workload.ts";

/** A fresh process that offers one message, as a serverless function does. */
export const start: Contest = {
  name: "start",
  title: "a fresh process: import, connect, offer one delayed message",
  async round({ peer, isQuick, progress }) {
    const program = PROGRAMS[peer];
    if (program === undefined) return [];
    await using server = await BenchServer.start();
    const runs: Start[] = [];
    // The first finds cold files, and Redis without scripts.
    for (let i = 0; i <= (isQuick ? 3 : 21); i++) {
      progress(`process ${i}`);
      runs.push(await run(program, server.url));
    }
    const warm = runs.slice(1);
    return [
      { name: "imported after", value: median(warm.map((each) => each.imported)), unit: "ms" },
      { name: "offered after", value: median(warm.map((each) => each.offered)), unit: "ms" },
      { name: "processor time", value: median(warm.map((each) => each.processor)), unit: "ms" },
    ];
  },
};

/** In milliseconds since Node.js began. */
interface Start {
  readonly imported: number;
  readonly offered: number;
  readonly processor: number;
}

async function run({ load, offer }: FirstOffer, url: string): Promise<Start> {
  const text = `
    ${load}
    const imported = performance.now();
    const url = ${JSON.stringify(url)};
    ${offer}
    const offered = performance.now();
    const { user, system } = process.cpuUsage();
    process.stdout.write(JSON.stringify({ imported, offered, processor: (user + system) / 1000 }), () => process.exit());`;
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ["--input-type=module", "--eval", text],
    { cwd: ROOT },
  );
  return JSON.parse(stdout) as Start;
}

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));

interface FirstOffer {
  readonly load: string;
  readonly offer: string;
}

/** As each library's own README has it. Java starts a virtual machine first, and takes no part. */
const PROGRAMS: Readonly<Partial<Record<PeerName, FirstOffer>>> = {
  delayline: {
    load: 'import { Delayline } from "delayline";',
    offer: `
      const line = new Delayline({ redis: url });
      await line.getDelayedQueue("orders", { transfer: false }).offer({ id: 1 }, 60_000);`,
  },
  "delayline-reliable": {
    load: 'import { Delayline } from "delayline";',
    offer: `
      const line = new Delayline({ redis: url });
      await line.getReliableQueue("orders", { transfer: false }).offer({ id: 1 }, 60_000);`,
  },
  bullmq: {
    load: 'import { Queue } from "bullmq";',
    offer: `
      const queue = new Queue("orders", { connection: { url } });
      await queue.add("order", { id: 1 }, { delay: 60_000 });`,
  },
  "bee-queue": {
    load: 'import Queue from "bee-queue";',
    offer: `
      const queue = new Queue("orders", { redis: url, isWorker: false, getEvents: false });
      await queue.createJob({ id: 1 }).delayUntil(Date.now() + 60_000).save();`,
  },
  // The least that a library on ioredis can take: one script that adds to two structures.
  redisson: {
    load: 'import { Redis } from "ioredis";',
    offer: `
      const redis = new Redis(url);
      const script = "redis.call('zadd', KEYS[1], ARGV[1], ARGV[2]) redis.call('rpush', KEYS[2], ARGV[2])";
      await redis.eval(script, 2, "timeout", "order", Date.now() + 60_000, '{"id":1}');`,
  },
};
