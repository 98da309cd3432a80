/**
 * A process that takes part in a run of the matrix. It loads, says "loaded", begins when it hears its task, and says
 * "begun". A consumer notes its handlers. A producer notes its offers before and after; when it hears "stop", it
 * settles them and says "stopped". `CLOCK_SHIFT` makes its clock wrong; instants in notes are monotonic.
 */
// oxlint-disable-next-line import/no-unassigned-import -- It does its work by being imported.
import "./shift-clock.ts";
import { setTimeout as sleep } from "node:timers/promises";
import { endWithParent, tell } from "../../../scripts/child/parent.ts";
import { Delayline, OfferError, type Delivery } from "../../../src/index.ts";
import { now } from "../../matrix/history.ts";
import {
  CONCURRENCY,
  LARGE,
  openDelayed,
  openReliable,
  type Task,
  type Note,
} from "../../matrix/task.ts";
import { redisAt } from "../partitions/site-address.ts";

/** Milliseconds between two offers: 200 a second. */
const INTERVAL = 5;

/** Longest time between two looks at the clock that is no standstill, in milliseconds. */
const STALL = 1000;

/** Keys of an exclusive queue. */
const KEYS = 12;

/** Milliseconds that an offer may take: longer than any outage. */
const OUTLAST = 60_000;

endWithParent();

const note = (one: Note): void => void tell(one);

async function handle(payload: string, delivery?: Delivery<string>): Promise<void> {
  const n = Number(payload.slice(1, payload.indexOf(";")));
  const { attempt = 1, fence = 0 } = delivery ?? {};
  const startedAt = now();
  note({ what: "start", n, attempt, fence, startedAt });
  await sleep(Math.random() * 5);
  note({ what: "done", n, startedAt, at: now() });
}

/** Notes when this process stands still: nobody else knows. */
function watchForStalls(): void {
  let looked = now();
  setInterval(() => {
    const at = now();
    if (at - looked > STALL) note({ what: "stall", from: looked, to: at });
    looked = at;
  }, 20);
}

function consume(line: Delayline, task: Task): void {
  if (task.queue === "plain") {
    line
      .getBlockingQueue<string>(task.name, { codec: "string" })
      .subscribe((payload) => handle(payload), { concurrency: CONCURRENCY });
  } else {
    const own = task.queue === "exclusive" ? {} : { concurrency: CONCURRENCY };
    openReliable(line, task).subscribe(handle, { ...own, onError: () => {} });
  }
}

function produce(line: Delayline, task: Task): void {
  const queue = task.queue === "plain" ? openDelayed(line, task) : openReliable(line, task);
  const calls = new Set<Promise<void>>();
  let n = task.first;
  const offer = async (): Promise<void> => {
    const own = n++;
    const key = `k${own % KEYS}`;
    const isExclusive = task.queue === "exclusive";
    // All messages of a key wait equally long, so that their order is that of the offers.
    const delay = task.moreDelay + (isExclusive ? 150 : 50 + Math.random() * 200);
    note({ what: "offer", n: own, key, sentAt: now(), delay });
    try {
      const { deadline } = await queue.offer(
        `${task.mark}${own};`.padEnd(own % LARGE === 0 ? task.largeBytes : 0, "."),
        delay,
        isExclusive ? { partitionKey: key } : {},
      );
      note({ what: "acknowledged", n: own, at: now(), deadline });
    } catch (error) {
      if (!(error instanceof OfferError)) throw error;
      note({ what: "rejected", n: own, stored: error.stored });
    }
  };
  const timer = setInterval(() => {
    const call = offer();
    calls.add(call);
    void call.finally(() => calls.delete(call));
  }, INTERVAL);
  process.on("message", (word) => {
    if (word !== "stop") return;
    clearInterval(timer);
    void (async () => {
      while (calls.size > 0) await Promise.all(calls);
      await tell("stopped");
    })();
  });
}

process.once("message", (task: Task) => {
  const isProducer = task.role === "produce";
  const { redis } = redisAt(task.address);
  const line = new Delayline({
    redis,
    ...(isProducer ? { transfer: false, callTimeout: OUTLAST } : {}),
  });
  line.on("error", () => {});
  if (isProducer) produce(line, task);
  else {
    watchForStalls();
    consume(line, task);
  }
  void tell("begun");
});
void tell("loaded");
