/**
 * A process that handles messages of a reliable queue in every way, and reports each delivery before it does anything
 * with it. It loads, says "loaded", begins when it hears "go", and closes its client when it hears "close".
 *
 * A payload is `<word> <n>`. What becomes of a message "any" depends on its number, its attempt and `SEED`. A message
 * "deadly" never ends, and a message "once" never ends in its first delivery; whoever has started it kills it.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { endWithParent, hangUp, tell } from "../../../scripts/child/parent.ts";
import {
  ClosedError,
  Delayline,
  RejectError,
  type Delivery,
  type ReliableQueueOptions,
} from "../../../src/index.ts";
import { Random } from "../garbage.ts";

/** A delivery, as the user's code sees it. */
export interface AttemptNote {
  readonly payload: string;
  readonly attempt: number;
  readonly failures: readonly (readonly [attempt: number, reason: string])[];
}

endWithParent();
const { REDIS = "", QUEUE = "", OPTIONS = "{}", SEED = "0" } = process.env;
const { CONCURRENCY = "10", BY_HAND = "0" } = process.env;
const line = new Delayline({ redis: REDIS, codec: "string", unreachableTimeout: 300 });
line.on("error", () => {});
const rest = (most: number) => sleep(Math.random() * most);

async function note({ payload, attempt, failures }: Delivery<string>): Promise<void> {
  const told = failures.map((one) => [one.attempt, one.reason] as const);
  await tell({ payload, attempt, failures: told } satisfies AttemptNote);
}

/** The same choice wherever this delivery is made. */
function fateOf({ payload, attempt }: Delivery<string>, fates: readonly string[]): string {
  const n = Number(payload.split(" ")[1]);
  return new Random(Number(SEED) + n * 7919 + attempt * 104_729).pick(fates);
}

const HANDLED = ["return", "return", "throw", "ack", "ack", "ack and throw", "nack", "reject"];

async function handle(_: string, delivery: Delivery<string>): Promise<void> {
  await note(delivery);
  const [word] = delivery.payload.split(" ");
  if (word === "deadly" || (word === "once" && delivery.attempt === 1)) await new Promise(() => {});
  if (word !== "any") return;
  const fate = fateOf(delivery, HANDLED);
  await rest(40);
  if (fate === "throw") throw new Error("bad luck");
  // What these calls reject with ends the handler, as it usually does.
  if (fate === "ack") await delivery.ack();
  if (fate === "ack and throw") {
    await delivery.ack().catch(() => {});
    throw new Error("after the acknowledgement");
  }
  if (fate === "nack") await delivery.nack({ reason: "nacked", delay: 20 });
  // Most rejected messages would leave the storm too early.
  if (fate === "reject" && delivery.attempt > 1) throw new RejectError("hopeless");
}

const TAKEN = ["ack", "ack", "nack", "forget", "extend"];

async function settle(delivery: Delivery<string>): Promise<void> {
  await note(delivery);
  const fate = fateOf(delivery, TAKEN);
  await rest(40);
  if (fate === "ack") await delivery.ack();
  if (fate === "nack") await delivery.nack({ reason: "nacked", delay: 20 });
  if (fate === "extend") await delivery.extend(50);
}

async function takeByHand(): Promise<void> {
  for (;;) {
    try {
      const deliveries = await queue.takeMany({ limit: 5, timeout: 100 });
      await Promise.all(deliveries.map((delivery) => settle(delivery).catch(() => {})));
    } catch (error) {
      if (error instanceof ClosedError) return;
    }
  }
}

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The test's own.
const options = JSON.parse(OPTIONS) as ReliableQueueOptions<string>;
const queue = line.getReliableQueue(QUEUE, options);
process.on("message", (word) => {
  if (word === "go") {
    // The only consumer of a partition takes one message at a time.
    const many = options.exclusive === true ? {} : { concurrency: Number(CONCURRENCY) };
    queue.subscribe(handle, { ...many, onError: () => {} });
    for (let i = 0; i < Number(BY_HAND); i++) void takeByHand();
  } else {
    // Handlers that still run are cut off.
    void line.close({ handlerTimeout: 10 }).then(hangUp);
  }
});
void tell("loaded");
