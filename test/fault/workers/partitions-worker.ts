/**
 * A process that works on two queues in partitions while their number changes: a plain one, and a reliable one with two
 * groups. It offers, cancels, puts off and replaces messages, and takes them. At the end it hands over its records.
 *
 * It loads, says "loaded", and obeys: "produce", "take plain", "take reliable", "what answers" (sends the kinds of
 * results that its calls had), "finish" (stops producing, and sends a {@link PartitionsReport}), "end" (sends its
 * {@link Takings}). A changer hears `{ to, dieAfter }`: it changes the numbers of both queues, and kills itself
 * `dieAfter` milliseconds after the first messages have moved, or when it is done.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Cluster } from "ioredis";
import { endWithParent, hangUp, tell } from "../../../scripts/child/parent.ts";
import {
  Delayline,
  OfferError,
  RedisError,
  RejectError,
  type Delivery,
  type OfferOptions,
} from "../../../src/index.ts";
import type { Entry } from "./storm-producer.ts";

/** What a producer hands over. */
export interface PartitionsReport {
  readonly entries: Entry[];
  /** How often each result occurred. */
  readonly answers: Record<string, number>;
  /** Results that cannot be true: a message that was certainly delayed was not found, or a key was delayed twice. */
  readonly wrong: string[];
  readonly calls: number;
  readonly rejected: string[];
}

/** What was taken from the plain queue, and what the groups of the reliable one did. */
export interface Takings {
  readonly plain: string[];
  readonly done: [group: string, payload: string, attempt: number][];
  readonly failed: [group: string, payload: string, attempt: number][];
  readonly dead: [group: string, payload: string][];
  /** Retrying messages that a cancel was tried on, and whether it succeeded. */
  readonly retrying: [payload: string, wasCancelled: boolean][];
  readonly errors: string[];
}

endWithParent();
const { REDIS = "", QUEUE = "", NAME = "", PARTITIONS = "2", RATE = "300" } = process.env;
const { DELAY = "800" } = process.env;

/** Tolerance in milliseconds where clocks are compared. */
const MARGIN = 100;

const places = JSON.parse(REDIS) as { ports?: number[]; urls?: string[] };
const cluster =
  places.ports && new Cluster(places.ports.map((port) => ({ host: "127.0.0.1", port })));
cluster?.on("error", () => {});
const connecting = {
  redis: cluster ?? places.urls ?? [],
  codec: "string",
  // Longer than the process may sleep.
  callTimeout: 30_000,
} as const;
const line = new Delayline(connecting);
/** It takes and moves nothing, so it learns of a change only when Redis refuses a call. */
const producer = new Delayline({ ...connecting, transfer: false });
const errors: string[] = [];
for (const one of [line, producer])
  one.on("error", (error) => errors.push(`${String(error)}: ${String(error.cause)}`));
const partitions = Number(PARTITIONS);
const plainName = `${QUEUE}-plain`;
const reliableName = `${QUEUE}-reliable`;
const settings = { partitions, leaseTimeout: 5000, retry: [150], maxAttempts: 20 };

const openDelayed = () => producer.getDelayedQueue<string>(plainName, { partitions });
const openReliable = (client: Delayline, group = "a") =>
  client.getReliableQueue<string>(reliableName, { ...settings, group });
type Queue = ReturnType<typeof openDelayed> | ReturnType<typeof openReliable>;

const entries: Entry[] = [];
const answers: Record<string, number> = {};
const wrong: string[] = [];
const rejected: string[] = [];
let calls = 0;

const newDelay = () => Math.random() * Number(DELAY);

function note(answer: string): void {
  answers[answer] = (answers[answer] ?? 0) + 1;
}

/** Makes a call; undefined if it was rejected. */
async function call<Answer>(doing: () => Promise<Answer>): Promise<{ answer: Answer } | undefined> {
  calls++;
  try {
    return { answer: await doing() };
  } catch (error) {
    if (!(error instanceof RedisError)) throw error;
    rejected.push(`${error.message}: ${String(error.cause)}`);
    return undefined;
  }
}

/** Whether a message was certainly still delayed when a call ended just now. */
async function isStillDelayed([, delivered, notBefore]: Entry): Promise<boolean> {
  return delivered === "once" && (await line.serverTime()) < notBefore - MARGIN;
}

async function offer(
  queue: Queue,
  label: string,
  options: OfferOptions = {},
  holder?: Entry,
): Promise<{ entry: Entry; id: string }> {
  const entry: Entry = [`${NAME} ${label} ${entries.length}`, "once", 0];
  entries.push(entry);
  calls++;
  try {
    const { deadline, outcome, id } = await queue.offer(entry[0], newDelay(), options);
    note(`offer: ${outcome}`);
    if (holder !== undefined && outcome === "added" && (await isStillDelayed(holder))) {
      wrong.push(`${options.key} is delayed twice: ${holder[0]}, ${entry[0]}`);
    }
    entry[2] = deadline;
    if (outcome === "existing") entry[1] = "never";
    if (holder !== undefined && (outcome === "replaced" || outcome === "updated"))
      holder[1] = "never";
    return { entry, id };
  } catch (error) {
    if (!(error instanceof OfferError)) throw error;
    rejected.push(`${error.message}: ${String(error.cause)}`);
    entry[1] = error.effect === "unknown" ? "unknown" : "never";
    if (error.effect === "unknown" && holder !== undefined) holder[1] = "unknown";
    return { entry, id: "" };
  }
}

/** Changes a message that is delayed by its deadline. Returns whether it was found. */
async function change(entry: Entry, what: string, doing: () => Promise<boolean>): Promise<boolean> {
  const done = await call(doing);
  if (done === undefined) {
    entry[1] = "unknown";
    return false;
  }
  note(`${what}: ${done.answer}`);
  if (!done.answer && (await isStillDelayed(entry))) wrong.push(`${what}: false for ${entry[0]}`);
  return done.answer;
}

async function cancel(queue: Queue, entry: Entry, idOrKey: string, hint = {}): Promise<boolean> {
  const wasCancelled = await change(entry, "cancel", () => queue.cancel(idOrKey, hint));
  if (wasCancelled) entry[1] = "never";
  return wasCancelled;
}

/** The life of one message. */
async function live(queue: Queue, key: string): Promise<void> {
  const isReliable = queue.name === reliableName;
  const label = isReliable ? "r" : "p";
  const choice = Math.random();
  const withKey = choice < 0.8;
  const partitionKey = Math.random() < 0.3 ? `customer ${key}` : undefined;
  const own = withKey
    ? { key, ...(partitionKey && { partitionKey }) }
    : { ...(partitionKey && { partitionKey }) };
  const hint = partitionKey && Math.random() < 0.5 ? { partitionKey } : {};
  const { entry, id } = await offer(queue, label, own);
  if (entry[1] !== "once") return;
  const isById = choice >= 0.8;
  // At some time in its life, or near its deadline; earlier if the message might be found while it waits for a retry.
  const remaining = entry[2] - (await line.serverTime());
  const isSharp = !(isById && isReliable) && Math.random() < 0.3;
  const wait = isSharp
    ? remaining + Math.random() * 4 - 2
    : remaining * Math.random() * (isById && isReliable ? 0.8 : 1.2);
  await sleep(Math.max(0, wait));
  if (choice < 0.4) {
    const onDuplicate = (["replace", "update", "ignore"] as const)[Math.floor(choice / 0.14)];
    await offer(queue, label, { ...own, onDuplicate: onDuplicate ?? "ignore" }, entry);
  } else if (choice < 0.6) {
    await cancel(queue, entry, key, hint);
  } else if (choice < 0.7) {
    let deadline = 0;
    const found = await change(entry, "reschedule", async () => {
      const reply = await queue.reschedule(key, newDelay(), hint);
      deadline = reply?.deadline ?? 0;
      return reply !== undefined;
    });
    if (found) entry[2] = deadline;
  } else if (isById) {
    const wasCancelled = await cancel(queue, entry, id);
    // One group may already have handled it while it waited for another group's retry.
    const isOver = (await line.serverTime()) > entry[2] - MARGIN;
    if (isReliable && isOver && wasCancelled) entry[1] = "any";
  } else {
    await change(entry, "get", async () => (await queue.get(key, hint)) !== undefined);
  }
}

const stopping = new AbortController();
const running = new Set<Promise<unknown>>();
function start(task: Promise<unknown>): void {
  running.add(task);
  void task.then(() => running.delete(task));
}

async function produce(): Promise<void> {
  const plain = openDelayed();
  const reliable = openReliable(producer);
  const begun = performance.now();
  let made = 0;
  for (let n = 0; !stopping.signal.aborted; n++) {
    // A process that slept does not catch up.
    const due = Math.min(made + 100, ((performance.now() - begun) / 1000) * Number(RATE));
    for (; made < due; made++) {
      const isReliable = made % 4 === 0;
      const queue = isReliable ? reliable : plain;
      if (made % 8 < 4) start(live(queue, `${NAME}:${n}:${made}`));
      else start(offer(queue, isReliable ? "r" : "p"));
    }
    await sleep(5);
  }
  await Promise.all(running);
}

const takings: Takings = {
  plain: [],
  done: [],
  failed: [],
  dead: [],
  retrying: [],
  errors,
};
const cancelling = new Set<Promise<unknown>>();

async function takePlain(): Promise<void> {
  const queue = line.getBlockingQueue<string>(plainName, { partitions });
  for (;;) {
    try {
      // Takes give up now and then, so that messages arrive for nobody.
      const signal = AbortSignal.timeout(Math.ceil(20 + Math.random() * 200));
      takings.plain.push(...(await queue.takeMany({ limit: 10, signal })));
    } catch (error) {
      if (!(error instanceof Error) || error.name === "ClosedError") return;
      if (error.name !== "TimeoutError") errors.push(`take: ${String(error)}`);
    }
  }
}

function takeReliable(): void {
  for (const group of ["a", "b"]) {
    const queue = openReliable(line, group);
    const handle = async (payload: string, { id, attempt }: Delivery<string>) => {
      await sleep(Math.random() * 20);
      const luck = Math.random();
      if (group === "a" && attempt < 3 && luck < 0.2) {
        takings.failed.push([group, payload, attempt]);
        if (luck < 0.05) cancelling.add(cancelRetrying(queue, id, payload));
        if (luck > 0.18) {
          takings.dead.push([group, payload]);
          throw new RejectError("hopeless");
        }
        throw new Error("bad luck");
      }
      takings.done.push([group, payload, attempt]);
    };
    queue.subscribe(handle, {
      concurrency: 20,
      onError: () => {},
    });
  }
}

/** Cancels a message by its id while it waits for the retry of the one group that failed. */
async function cancelRetrying(queue: Queue, id: string, payload: string): Promise<void> {
  await sleep(20 + Math.random() * 140);
  try {
    takings.retrying.push([payload, await queue.cancel(id)]);
  } catch (error) {
    errors.push(`cancel of a retry: ${String(error)}`);
  }
}

async function changeNumbers(to: number, dieAfter: number): Promise<void> {
  const onProgress = () => {
    setTimeout(() => process.kill(process.pid, "SIGKILL"), dieAfter);
  };
  await Promise.all(
    [plainName, reliableName].map((name) => line.setPartitions(name, to, { onProgress })),
  );
  process.kill(process.pid, "SIGKILL");
}

let producing: Promise<void> | undefined;
const hears: Record<string, () => Promise<void> | void> = {
  produce: () => {
    producing = produce();
  },
  "take plain": async () => {
    await Promise.all([takePlain(), takePlain()]);
  },
  "take reliable": takeReliable,
  "what answers": async () => {
    await tell(Object.keys(answers));
  },
  finish: async () => {
    stopping.abort();
    await producing;
    const report: PartitionsReport = { entries, answers, wrong, calls, rejected };
    await tell(report);
  },
  end: async () => {
    await Promise.all(cancelling);
    await Promise.all([line.close(), producer.close()]);
    cluster?.disconnect();
    await tell(takings);
    hangUp();
  },
};
process.on("message", (word: string | { to: number; dieAfter: number }) => {
  void (typeof word === "string" ? hears[word]?.() : changeNumbers(word.to, word.dieAfter));
});
void tell("loaded");
