/**
 * A process that joins and leaves the consumers of an exclusive queue, and writes down what its handlers do.
 *
 * It says "loaded". It hears "join" (a new client that consumes) and "leave" (closes that client), and says "joined" and
 * "left". `NAME` names it in the ledger, a LIST in a Redis of its own (`LEDGER`); see {@link StormNote}. What a handler
 * does is written in its message.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { endWithParent, tell } from "../../../scripts/child/parent.ts";
import { Delayline, type Delivery } from "../../../src/index.ts";
import { FATAL, stormKeys, type StormNote, type StormOrder } from "../partitions/storm-note.ts";

/** Appends a line with the server's time. The second key is the set of handled messages. */
const NOTE = `
local now = redis.call("TIME")
redis.call("RPUSH", KEYS[1], string.format("%d.%06d ", now[1], now[2]) .. ARGV[1])
if ARGV[2] ~= "" then redis.call("SADD", KEYS[2], ARGV[2]) end
`;

/** Longest time between two looks at the clock that is no stall. */
const STALL = 1000;

/** What a handler throws by plan. */
class Failure extends Error {
  /** Notes that the failure is settled. */
  readonly settled: () => Promise<unknown>;

  constructor(settled: () => Promise<unknown>) {
    super("by plan");
    this.settled = settled;
  }
}

endWithParent();
const { REDIS = "", LEDGER = "", QUEUE = "", NAME = "" } = process.env;
const { STRICT = "no", RETRY = "[]", MAX_DELIVERIES = "4" } = process.env;
const { log, done, calm } = stormKeys(QUEUE);
const ledger = new Redis(LEDGER, { maxRetriesPerRequest: null });
let line: Delayline | undefined;

const note = (one: Partial<StormNote>, handled = "") =>
  ledger.eval(NOTE, 2, log, done, JSON.stringify({ by: NAME, ...one }), handled);

let looked = Date.now();
setInterval(() => {
  const now = Date.now();
  if (now - looked > STALL) void note({ what: "stall", from: looked, entered: now });
  looked = now;
}, 20);

const handle = async (order: StormOrder, delivery: Delivery<StormOrder>): Promise<void> => {
  const entered = Date.now();
  const { key, number, duration, fails, offered } = order;
  const { attempt, fence = 0, signal } = delivery;
  let aborted = signal.aborted ? entered : 0;
  signal.addEventListener("abort", () => (aborted = Date.now()));
  const about = { key, number, attempt, fence, offered, entered };
  await note({ ...about, what: "start", aborted });
  await sleep(duration);
  // After a standstill, timers that are overdue come first.
  if (Date.now() - entered > duration + STALL) await sleep(50);
  const isFailing = fails === FATAL ? (await ledger.exists(calm)) === 0 : attempt <= fails;
  if (!isFailing) {
    await note({ ...about, what: "done", aborted }, `${key}:${number}`);
    return;
  }
  await note({ ...about, what: "fail", aborted });
  throw new Failure(() => note({ ...about, what: "settled", aborted }));
};

const join = (): void => {
  line = new Delayline({ redis: REDIS });
  line.on("error", () => {});
  line
    .getReliableQueue<StormOrder>(QUEUE, {
      partitions: 2,
      exclusive: true,
      strict: STRICT === "yes",
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The test's own words.
      retry: JSON.parse(RETRY) as number[],
      maxAttempts: Number(MAX_DELIVERIES),
      leaseTimeout: 5000,
    })
    .subscribe(handle, {
      onError: (error) => {
        if (error instanceof Failure) void error.settled();
      },
    });
  void tell("joined");
};
process.on("message", (word) => {
  if (word === "join") join();
  else
    void (async () => {
      await line?.close();
      line = undefined;
      await tell("left");
    })();
});
void tell("loaded");
