/**
 * A process that consumes a queue exclusively, and records its work in a ledger: who handled which message of which
 * key, under which fence, how long after it was due, and whether another process handled a message of the same key at
 * that moment.
 *
 * It says "loaded", begins when it hears "go", closes when it hears "leave", and says "left". `PAUSE` is how long a
 * handler takes.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { endWithParent, tell } from "../../../scripts/child/parent.ts";
import { Delayline } from "../../../src/index.ts";

endWithParent();
const { REDIS = "", QUEUE = "", PAUSE = "2" } = process.env;
const [running, log] = [`${QUEUE}:running`, `${QUEUE}:log`];
let line: Delayline | undefined;

interface Order {
  readonly key: string;
  readonly number: number;
  readonly at: number;
}

/** Marks a key as running. If another process runs it, the log gets a line about the overlap. */
const START = `
local other = redis.call("HGET", KEYS[1], ARGV[1])
redis.call("HSET", KEYS[1], ARGV[1], ARGV[2])
if other then redis.call("RPUSH", KEYS[2], "overlap " .. ARGV[1] .. " " .. other .. " " .. ARGV[2]) end
`;

function go(): void {
  const ledger = new Redis(REDIS, { maxRetriesPerRequest: null });
  line = new Delayline({ redis: REDIS, codec: "json" });
  line.on("error", () => {});
  const handle = async (order: Order, fence: number | undefined) => {
    await ledger.eval(START, 2, running, log, order.key, process.pid);
    const late = Date.now() - order.at;
    await sleep(Math.random() * 2 * Number(PAUSE));
    const note = JSON.stringify({ ...order, late, fence, pid: process.pid });
    await ledger.multi().hdel(running, order.key).rpush(log, note).exec();
  };
  line
    .getReliableQueue<Order>(QUEUE, { exclusive: true })
    .subscribe((order, { fence }) => handle(order, fence));
}

async function leave(): Promise<void> {
  await line?.close();
  await tell("left");
}

process.on("message", (word) => {
  if (word === "go") go();
  else void leave();
});
void tell("loaded");
