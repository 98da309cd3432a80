/**
 * A process that handles messages of a reliable queue, and records its work in a ledger.
 *
 * It loads, says "loaded", and begins when it hears "go". The payloads are numbers. `WORK`, or the last word that it
 * heard, decides what it does with a message:
 *
 * - "complete": it takes its time, notes the completion, and is done;
 * - "hurry": the same, but without waiting for the ledger's reply: the acknowledgement follows the note at once;
 * - "stumble": as "complete", but one in ten fails;
 * - "fail": none succeeds. It calls `nack`, the handler throws, or one in a hundred is rejected.
 *
 * `PARTITIONS` is for a queue that has some. It replies to "there?". `REDIS` is the queue's server, `LEDGER` the ledger's, which
 * may be the same.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { endWithParent, tell } from "../../../scripts/child/parent.ts";
import { Delayline, RejectError, type Delivery } from "../../../src/index.ts";
import { LEDGER_SCRIPT, ledgerKeys } from "../reliable/handled.ts";

endWithParent();
const { REDIS = "", LEDGER = "", QUEUE = "", PAUSE = "50" } = process.env;
const { CONCURRENCY = "20", LEASE = "2000", PARTITIONS } = process.env;
let { WORK: work = "complete" } = process.env;
const { log, completed } = ledgerKeys(QUEUE);

function go(): void {
  const ledger = new Redis(LEDGER, { maxRetriesPerRequest: null });
  ledger.on("error", () => {});
  const note = (what: string, id: number, attempt: number) =>
    ledger.eval(LEDGER_SCRIPT, 2, log, completed, what, id, attempt);
  const line = new Delayline({ redis: REDIS, codec: "json" });
  line.on("error", () => {});
  const queue = line.getReliableQueue<number>(QUEUE, {
    leaseTimeout: Number(LEASE),
    maxAttempts: 1000,
    retry: [100],
    ...(PARTITIONS !== undefined && { partitions: Number(PARTITIONS) }),
  });
  const handle = async (id: number, delivery: Delivery<number>) => {
    const luck = Math.random();
    await note("started", id, delivery.attempt);
    await sleep(Math.random() * 2 * Number(PAUSE));
    if (work === "stumble" && luck < 0.1) throw new Error("bad luck");
    if (work === "fail") {
      if (luck < 0.01) throw new RejectError("hopeless");
      if (luck < 0.5) throw new Error("bad luck");
      await delivery.nack({ delay: 400 * (luck - 0.5) });
      return;
    }
    const noted = note("completed", id, delivery.attempt);
    if (work !== "hurry") await noted;
  };
  queue.subscribe(handle, { concurrency: Number(CONCURRENCY), onError: () => {} });
}

process.on("message", (word) => {
  if (word === "go") go();
  else if (word === "there?") void tell("here");
  else work = String(word);
});
void tell("loaded");
