/**
 * A process that carries sagas on, step by step: it notes each attempt of a step, takes its time, and acknowledges it with the
 * next step. Steps go to and fro between two queues, twice each. It loads, says "loaded", and begins when it hears "go".
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { endWithParent, tell } from "../../../scripts/child/parent.ts";
import { Delayline, type Delivery, type ReliableQueue } from "../../../src/index.ts";

/** One step of a saga. */
export interface SagaStep {
  readonly saga: number;
  readonly step: number;
}

endWithParent();
const { REDIS = "", QUEUE = "", STEPS = "5", PARTITIONS = "0" } = process.env;

function go(): void {
  const ledger = new Redis(REDIS);
  const line = new Delayline({ redis: REDIS, codec: "json" });
  line.on("error", () => {});
  const open = (name: string, partitions?: number) =>
    line.getReliableQueue<SagaStep>(name, {
      leaseTimeout: 1000,
      maxAttempts: 1000,
      retry: [50],
      ...(partitions !== undefined && { partitions }),
    });
  const own = open(QUEUE, PARTITIONS === "0" ? undefined : Number(PARTITIONS));
  const other = open(`${QUEUE}:other`);
  const handle =
    (to: ReliableQueue<SagaStep>) =>
    async ({ saga, step }: SagaStep, delivery: Delivery<SagaStep>) => {
      const { id, attempt } = delivery;
      await ledger.rpush(`${QUEUE}:ledger`, JSON.stringify({ saga, step, id, attempt }));
      await sleep(100 + Math.random() * 300);
      if (step === Number(STEPS)) return;
      const next = { saga, step: step + 1 };
      const delay = Math.random() * 200;
      // Every other step stays in its queue.
      await delivery.ack(
        step % 2 === 0
          ? { offer: [{ payload: next, delay }], to }
          : { offer: [{ payload: next, delay }] },
      );
      await sleep(Math.random() * 20);
    };
  own.subscribe(handle(other), { concurrency: 10 });
  other.subscribe(handle(own), { concurrency: 10 });
}

process.on("message", (word) => {
  if (word === "go") go();
});
void tell("loaded");
