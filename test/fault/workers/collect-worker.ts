/**
 * A process that handles collected messages: it tells each delivery, `DeliveryNote`, and then takes its time.
 *
 * It loads, says "loaded", and begins when it hears "go". `REDIS` is the server, `QUEUE` the queue, `LEASE` its lease timeout.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { endWithParent, tell } from "../../../scripts/child/parent.ts";
import { Delayline } from "../../../src/index.ts";

/** One delivery. */
export interface DeliveryNote {
  readonly id: string;
  readonly attempt: number;
  readonly payloads: readonly string[];
}

endWithParent();
const { REDIS = "", QUEUE = "", LEASE = "1000" } = process.env;

function go(): void {
  const line = new Delayline({ redis: REDIS, codec: "string" });
  line.on("error", () => {});
  const options = { leaseTimeout: Number(LEASE), maxAttempts: 1000, retry: [20] };
  line.getReliableQueue<string>(QUEUE, options).subscribe(
    async (_, { id, attempt, payloads }) => {
      await tell({ id, attempt, payloads } satisfies DeliveryNote);
      await sleep(200 + Math.random() * 200);
    },
    { concurrency: 20, onError: () => {} },
  );
}

process.on("message", go);
void tell("loaded");
