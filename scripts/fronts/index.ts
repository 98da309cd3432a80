/**
 * Measures what Redis spends on the functions in front of the body of each hot script, which it makes anew at each run:
 * the front runs alone, before `return 1`.
 *
 *   npm run fronts
 *
 * Prints the microseconds of Redis for one run, and how many functions it makes. The first row has no front.
 */
import { startRedis } from "delayline/testing";
import { Redis } from "ioredis";
import { CommandStats } from "../bench/command-stats.ts";
import { putServerOnPath } from "../server/on-path.ts";
import { functionsOf, HOT_SCRIPTS } from "./hot-scripts.ts";

/** Redis collects garbage at some runs: rounds are shorter than the time between two of these, and the least one counts. */
const ROUNDS = 60;
const RUNS = 40;

await putServerOnPath();
await using server = await startRedis({ env: { ...process.env, REDIS_URL: "" } });
const redis = new Redis(server.url);
const fronts = [
  { name: "bare", front: "" },
  ...HOT_SCRIPTS.map(({ name, source }) => ({ name, front: source.front })),
];
const texts = fronts.map(({ front }) => `${front}\nreturn 1`);
const digests = await Promise.all(texts.map((text) => redis.script("LOAD", text)));
const least = fronts.map(() => Infinity);
for (let round = 0; round < ROUNDS; round++) {
  for (const [i, digest] of digests.entries()) {
    await redis.config("RESETSTAT");
    const runs = redis.pipeline();
    for (let run = 0; run < RUNS; run++) runs.evalsha(String(digest), 0);
    await runs.exec();
    const { scriptTime } = new CommandStats(await redis.info("commandstats"));
    least[i] = Math.min(least[i] ?? Infinity, scriptTime / RUNS);
  }
}
await redis.quit();
for (const [i, { name, front }] of fronts.entries()) {
  const time = (least[i] ?? 0).toFixed(2).padStart(6);
  console.log(`${time} us ${String(functionsOf(front).length).padStart(3)} functions  ${name}`);
}
