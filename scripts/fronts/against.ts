/**
 * Compares the time that Redis takes for each hot script with another checkout of this repository, and how many commands
 * each runs. The two take turns on one server, and the least of all rounds counts.
 *
 *   npm run fronts:against -- ../other            # all moves
 *   npm run fronts:against -- ../other transfer   # those whose names begin so
 *
 * Prints microseconds for one run: there, here, and the difference.
 */
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { startRedis } from "delayline/testing";
import { Redis } from "ioredis";
import type { RawReply } from "../../src/lua/reply.ts";
import type { run, Script } from "../../src/lua/script.ts";
import { CommandStats } from "../bench/command-stats.ts";
import { putServerOnPath } from "../server/on-path.ts";
import { Ground, keys, MOVES, type Move } from "./moves.ts";

const ROUNDS = 40;
const RUNS = 30;

type AnyScript = Script<string, string, unknown, string>;
type AnyRun = (redis: Redis, script: AnyScript, ...rest: unknown[]) => Promise<RawReply>;

/** The scripts of a checkout. */
class Checkout {
  constructor(readonly folder: string) {}

  async scriptOf({ of: [file, name, form] }: Move): Promise<AnyScript> {
    const exported = await this.#import(file);
    let found: unknown = exported[name];
    if (form !== undefined) found = (found as Record<string, unknown>)[form];
    // Older releases had a form for each kind of the insertion order.
    const { addresses } = found as { addresses?: AnyScript };
    return addresses ?? (found as AnyScript);
  }

  async run(): Promise<AnyRun> {
    const { run: found } = (await this.#import("script.ts")) as { run: typeof run };
    return found as unknown as AnyRun;
  }

  async #import(file: string): Promise<Record<string, unknown>> {
    return (await import(pathToFileURL(join(this.folder, "src/lua", file)).href)) as Record<
      string,
      unknown
    >;
  }
}

const [other, beginning = ""] = process.argv.slice(2);
if (other === undefined) {
  console.error("npm run fronts:against -- <folder of another checkout> [<beginning of a name>]");
  process.exit(2);
}
await putServerOnPath();
await using server = await startRedis({ env: { ...process.env, REDIS_URL: "" } });
const redis = new Redis(server.url);
const checkouts = [
  new Checkout(other),
  new Checkout(fileURLToPath(new URL("../..", import.meta.url))),
];
for (const move of MOVES.filter(({ name }) => name.startsWith(beginning))) {
  const sides = await Promise.all(
    checkouts.map(async (checkout) => {
      const [script, send] = [await checkout.scriptOf(move), await checkout.run()];
      return { script, send, least: Infinity, commands: 0 };
    }),
  );
  for (let round = 0; round < ROUNDS; round++) {
    for (const side of round % 2 === 0 ? sides : sides.toReversed()) {
      await redis.flushall();
      const ground = new Ground(redis);
      let time = 0;
      let commands = 0;
      for (let i = 0; i < RUNS; i++) {
        const { args, rows = [] } = await move.prepare(ground);
        await redis.config("RESETSTAT");
        await side.send(redis, side.script, keys, args, rows);
        const stats = new CommandStats(await redis.info("commandstats"));
        time += stats.scriptTime;
        commands += stats.total - stats.calls("evalsha") - stats.calls("eval");
      }
      side.least = Math.min(side.least, time / RUNS);
      side.commands = commands / RUNS;
    }
  }
  const [there, here] = sides.map(({ least }) => least) as [number, number];
  const change = (100 * (here / there - 1)).toFixed(1).padStart(6);
  const [before, after] = sides.map(({ commands }) => commands.toFixed(2).padStart(7));
  const times = [there, here].map((time) => time.toFixed(2).padStart(8)).join("");
  console.log(`${move.name.padEnd(24)}${times} us ${change} %   commands${before}${after}`);
}
await redis.quit();
