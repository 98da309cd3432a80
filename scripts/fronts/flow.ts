/**
 * Measures what a flow costs Redis: the time of the scripts that move, and the commands that they run, for a message that falls due
 * alone and for a herd, beside a queue without a flow.
 *
 *   npm run fronts:flow
 *
 * All rows take turns on one server, and the least of all rounds counts. Prints microseconds and commands for each message.
 */
import { startRedis } from "delayline/testing";
import { Redis } from "ioredis";
import { pacedTransfer, transfer } from "../../src/lua/delayed/transfer.ts";
import { run } from "../../src/lua/script.ts";
import { createId, packMember } from "../../src/queue/message/message.ts";
import { CommandStats } from "../bench/command-stats.ts";
import { putServerOnPath } from "../server/on-path.ts";
import { keys } from "./moves.ts";

const ROUNDS = 12;

/** Messages of a herd that one script takes in or lets go. */
const BATCH = 100;

interface Row {
  readonly name: string;
  readonly flow?: Readonly<Record<string, string>>;
  readonly into: "list" | "stream";
  readonly lanes: number;
  /** What is measured: messages that come alone; a herd that falls due; herds on their way into the waiting room, and out of it. */
  readonly as: "alone" | "herd" | "in" | "out";
}

const LANES = { kind: "lanes", ahead: "1000000", lane: "0 0 1 0" };
const RATED = { ...LANES, lane: "10 1000 1 0", rates: "1" };
const SLOTS = { ...LANES, lane: "0 0 1 1000", slots: "1" };
const PACED = { kind: "paced", step: "1", burst: "1000000" };

const ROWS: readonly Row[] = [
  ...(["list", "stream"] as const).flatMap((into): Row[] => [
    { name: "no flow", into, lanes: 1, as: "alone" },
    { name: "paced", flow: PACED, into, lanes: 1, as: "alone" },
    { name: "lanes, straight", flow: LANES, into, lanes: 1, as: "alone" },
    { name: "lanes with rates", flow: RATED, into, lanes: 1, as: "alone" },
    ...(into === "stream"
      ? [{ name: "lanes with slots", flow: SLOTS, into, lanes: 1, as: "alone" } as const]
      : []),
    { name: "no flow", into, lanes: 1, as: "herd" },
    { name: "paced", flow: PACED, into, lanes: 1, as: "herd" },
  ]),
  { name: "lanes", flow: LANES, into: "list", lanes: 1, as: "in" },
  { name: "lanes", flow: LANES, into: "list", lanes: 1000, as: "in" },
  { name: "lanes", flow: LANES, into: "list", lanes: 1, as: "out" },
  { name: "lanes", flow: LANES, into: "list", lanes: 10, as: "out" },
  { name: "lanes", flow: LANES, into: "list", lanes: 1000, as: "out" },
  { name: "lanes with rates", flow: RATED, into: "list", lanes: 1000, as: "out" },
  { name: "lanes", flow: LANES, into: "stream", lanes: 1000, as: "out" },
  { name: "lanes with slots", flow: SLOTS, into: "stream", lanes: 1000, as: "out" },
];

const PAYLOAD = Buffer.alloc(100, "a");

await putServerOnPath();
await using server = await startRedis({ env: { ...process.env, REDIS_URL: "" } });
const redis = new Redis(server.url);
let made = 0;

/** Puts due messages into the queue, lane by lane in turn. */
async function fallDue(count: number, { lanes, flow }: Row): Promise<void> {
  const pipeline = redis.pipeline();
  for (let i = 0; i < count; i++) {
    const more = flow?.["lane"] === undefined ? undefined : { lane: `tenant ${made % lanes}` };
    const id = createId(Date.now() * 1000 + made++);
    pipeline.zadd(keys.timeouts, 1, packMember(id, PAYLOAD, "", more));
  }
  await pipeline.exec();
}

const move = ({ flow, into }: Row) =>
  run(redis, (flow === undefined ? transfer : pacedTransfer)[into], keys, {
    limit: BATCH,
    grace: 0,
    claim: 0,
    task: "task",
    known: 0,
    makes: into === "stream" ? 1 : 0,
    mark: 0,
    shares: 1,
    arriving: "",
  });

/** Runs the script `runs` times, each behind `before`; returns microseconds and commands for each run. */
async function measure(row: Row, runs: number, before: () => Promise<void>) {
  let time = 0;
  let commands = 0;
  for (let i = 0; i < runs; i++) {
    await before();
    await redis.config("RESETSTAT");
    await move(row);
    const stats = new CommandStats(await redis.info("commandstats"));
    time += stats.scriptTime;
    commands += stats.total - stats.calls("evalsha") - stats.calls("eval");
  }
  return { time: time / runs, commands: commands / runs };
}

async function round(row: Row): Promise<{ time: number; commands: number }> {
  await redis.flushall();
  if (row.into === "stream") {
    await redis.xgroup("CREATE", keys.stream, "g", "0", "MKSTREAM");
  }
  if (row.flow !== undefined) await redis.hset(keys.flow, row.flow);
  if (row.as === "alone") return await measure(row, 30, () => fallDue(1, row));
  if (row.as === "herd") return perMessage(await measure(row, 10, () => fallDue(BATCH, row)));
  // As if as many were ready as may be: all that falls due waits.
  await redis.hset(keys.flow, "ahead", "0");
  const taking = await measure(row, 20, () => fallDue(BATCH, row));
  if (row.as === "in") return perMessage(taking);
  await redis.hset(keys.flow, "ahead", "1000000");
  return perMessage(await measure(row, 10, async () => void (await redis.hdel(keys.flow, "look"))));
}

function perMessage({ time, commands }: { time: number; commands: number }) {
  return { time: time / BATCH, commands: commands / BATCH };
}

const least = ROWS.map(() => ({ time: Infinity, commands: 0 }));
for (let i = 0; i < ROUNDS; i++) {
  for (const [k, row] of ROWS.entries()) {
    const found = await round(row);
    if (found.time < (least[k]?.time ?? 0)) least[k] = found;
  }
}
await redis.quit();
const WHAT = { alone: "alone", herd: "herd of 100", in: "into the room", out: "out of it" };
for (const [k, { name, into, lanes, as }] of ROWS.entries()) {
  const { time = 0, commands = 0 } = least[k] ?? {};
  const where = lanes > 1 ? `${lanes} lanes` : "";
  const cells = [name.padEnd(18), into.padEnd(7), WHAT[as].padEnd(14), where.padEnd(11)];
  console.log(
    `${cells.join("")}${time.toFixed(2).padStart(8)} us${commands.toFixed(2).padStart(8)} commands`,
  );
}
