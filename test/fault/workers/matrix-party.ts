/**
 * A process that takes part in a run of the matrix. It loads, says "loaded", begins when it hears its task, and says
 * "begun". A consumer notes its handlers. A producer notes its offers before and after; when it hears "stop", it
 * settles them and says "stopped". `CLOCK_SHIFT` makes its clock wrong; instants in notes are monotonic.
 */
// oxlint-disable-next-line import/no-unassigned-import -- It does its work by being imported.
import "./shift-clock.ts";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis, type Cluster } from "ioredis";
import { endWithParent, tell } from "../../../scripts/child/parent.ts";
import { Delayline, OfferError, type Delivery } from "../../../src/index.ts";
import { now } from "../../matrix/history.ts";
import {
  CONCURRENCY,
  LARGE,
  openDelayed,
  openReliable,
  unwantedOf,
  type Note,
  type Task,
} from "../../matrix/task.ts";
import { DECLARED, declarationsOf, REMOVED, SET } from "../../matrix/ticks.ts";
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

/** Sends until Redis has acknowledged it. */
async function insist(send: () => Promise<unknown>): Promise<void> {
  for (;;) {
    try {
      await send();
      return;
    } catch {
      await sleep(100);
    }
  }
}

/** Every process declares the schedules: any of them may be the last one that lives. */
async function declare(line: Delayline, task: Task): Promise<void> {
  const { schedules } = openReliable(line, task);
  const declared = declarationsOf(task);
  await insist(() => schedules.declare(SET, declared, { revision: DECLARED }));
}

/** Ends the schedules when it hears "stop". */
function schedule(line: Delayline, task: Task): void {
  const { schedules } = openReliable(line, task);
  process.on("message", (word) => {
    if (word !== "stop") return;
    void insist(() => schedules.declare(SET, {}, { revision: REMOVED })).then(() =>
      tell("stopped"),
    );
  });
}

/** A client that says which messages are not wanted any more. */
function clientFor({ address }: Task): Redis | Cluster {
  const { redis } = redisAt(address);
  if (address.cluster !== undefined) return redis as Cluster;
  const [group] = address.groups ?? [];
  const client = new Redis({
    ...group,
    maxRetriesPerRequest: null,
    failoverDetector: true,
    reconnectOnError: ({ message }) => message.startsWith("READONLY"),
  });
  client.on("error", () => {});
  return client;
}

function produce(line: Delayline, task: Task): void {
  const forbidder = task.queue === "conditional" ? clientFor(task) : undefined;
  const forbid = async (n: number): Promise<void> => {
    note({ what: "forbid", n, at: now() });
    try {
      await forbidder?.hset(unwantedOf(task), String(n), "");
      note({ what: "forbidden", n, at: now() });
    } catch {
      // Nobody knows whether Redis has it.
    }
  };
  const queue = task.queue === "plain" ? openDelayed(line, task) : openReliable(line, task);
  const calls = new Set<Promise<void>>();
  let n = task.firstOwn;
  const offer = async (): Promise<void> => {
    const own = n++;
    const key = `k${own % KEYS}`;
    const isExclusive = task.queue === "exclusive";
    // All messages of a key wait equally long, so that their order is that of the offers.
    const delay = task.moreDelay + (isExclusive ? 150 : 50 + Math.random() * 200);
    note({ what: "offer", n: own, key, sentAt: now(), delay });
    try {
      const payload = `${task.mark}${own};`.padEnd(own % LARGE === 0 ? task.largeBytes : 0, ".");
      const { deadline } = await queue.offer(payload, delay, {
        ...(isExclusive && { partitionKey: key }),
        ...(forbidder && {
          onlyIf: { key: unwantedOf(task), field: String(own), exists: false },
        }),
      });
      note({ what: "acknowledged", n: own, at: now(), deadline });
      if (forbidder === undefined || own % 2 === 0) return;
      await sleep(Math.random() * delay);
      await forbid(own);
    } catch (error) {
      if (!(error instanceof OfferError)) throw error;
      note({ what: "rejected", n: own, effect: error.effect });
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

process.once("message", (task: Task) => void begin(task));

async function begin(task: Task): Promise<void> {
  const isProducer = task.role === "produce";
  const { redis } = redisAt(task.address);
  const line = new Delayline({
    redis,
    ...(isProducer ? { transfer: false, callTimeout: OUTLAST } : {}),
  });
  line.on("error", () => {});
  if (task.queue === "scheduled") await declare(line, task);
  if (isProducer) (task.queue === "scheduled" ? schedule : produce)(line, task);
  else {
    watchForStalls();
    consume(line, task);
  }
  void tell("begun");
}

void tell("loaded");
