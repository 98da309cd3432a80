/**
 * Prints through how many files of `src/` a call goes, and how many functions, as V8 counts them.
 *
 *   npm run walks                   # the table
 *   npm run walks -- cancel         # the calls that have this in their names
 *   npm run walks -- offer --list   # also the files, and what ran in each
 *
 * A call is made some times to warm up, and then again and again: the least counts, since timers run in between. In
 * brackets the files without those of time, codecs, observe, errors and replies. It starts a Redis of its own.
 */
import { parseArgs } from "node:util";
import { Redis } from "ioredis";
import { startRedis } from "../../src/adapters/testing/index.ts";
import { Delayline } from "../../src/index.ts";
import { putServerOnPath } from "../server/on-path.ts";
import { CALLS, type NamedCall } from "./calls.ts";
import { Coverage, type Walk } from "./coverage.ts";

const WARM_UP = 20;
const TIMES = 15;

/** Files that every call passes, and that say nothing of the way. */
const ASIDE = /^(time|codecs|observe|values)\/|^(errors|cause|failure)\.ts$|^lua\/reply\.ts$/;

const { values, positionals } = parseArgs({
  options: { list: { type: "boolean", default: false } },
  allowPositionals: true,
});
const [wanted = ""] = positionals;

await putServerOnPath();
await using server = await startRedis({ env: { ...process.env, REDIS_URL: "" } });
const coverage = new Coverage(new URL("../../src/", import.meta.url));
await coverage.start();
console.log("| call | files | functions |\n| --- | --- | --- |");
for (const call of CALLS.filter(({ name }) => name.includes(wanted))) {
  const walk = await shortest(call);
  const files = [...walk.keys()];
  const own = files.filter((file) => !ASIDE.test(file));
  const functions = [...walk.values()].flat().length;
  console.log(`| ${call.name} | ${files.length} (${own.length}) | ${functions} |`);
  if (values.list) {
    for (const [file, names] of walk) console.log(`    ${file}: ${names.map(shown).join(", ")}`);
  }
}
coverage.stop();

/** The walk with the fewest functions. */
async function shortest({ name, prepare }: NamedCall): Promise<Walk> {
  await using line = new Delayline({ redis: server.url, codec: "json" });
  // Of the handler that throws.
  line.on("error", () => {});
  const redis = new Redis(server.url);
  const { before, make } = await prepare(line, redis, name);
  let least: Walk | undefined;
  for (let i = 0; i < WARM_UP + TIMES; i++) {
    await before?.();
    // What the last call left to do.
    await redis.ping();
    await coverage.take();
    await make();
    const walk = await coverage.take();
    if (i >= WARM_UP && size(walk) < (least === undefined ? Infinity : size(least))) least = walk;
  }
  redis.disconnect();
  if (least === undefined || least.size === 0) throw new Error(`nothing ran in "${name}"`);
  return least;
}

function size(walk: Walk): number {
  return [...walk.values()].flat().length;
}

function shown(name: string): string {
  return name === "" ? "(anonymous)" : name;
}
