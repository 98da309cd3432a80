/**
 * A process that offers messages, and cancels, puts off and replaces them, until it hears "stop". Then it hands over
 * its ledger: what must become of each message, according to the results that it got.
 *
 * With RESEND its offers are sent again when a reply is lost. An offer that is sent again is recognised until its first
 * copy has moved, so delays are long. If the outage was longer still, anything may have become of the message. Without
 * RESEND delays are short, and nothing is known of an offer whose reply is lost.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { endWithParent, hangUp, tell } from "../../../scripts/child/parent.ts";
import { Delayline, OfferError, RedisError, type OfferOptions } from "../../../src/index.ts";

/**
 * A message, how often it must be delivered, and not before when (epoch ms, the server's clock). "unknown": at most
 * once.
 */
export type Entry = [
  payload: string,
  delivered: "once" | "never" | "unknown" | "any",
  notBefore: number,
];

/** What a producer hands over. */
export interface ProducerReport {
  readonly entries: Entry[];
  /** How often each result occurred. */
  readonly answers: Record<string, number>;
}

endWithParent();
const { PORT, QUEUE = "", NAME = "", RESEND } = process.env;
const isResending = RESEND === "yes";

/** No message of the resending producer is due within this time (ms), not even one that is kept. */
const LONGEST_OUTAGE = 2_000;

const retries = isResending ? {} : { maxRetriesPerRequest: 0 };
const line = new Delayline({ redis: { port: Number(PORT), ...retries }, transfer: false });
line.on("error", () => {});
const queue = line.getDelayedQueue<string>(QUEUE, { codec: "string" });

const ledger = new Map<string, Entry>();
const answers: Record<string, number> = {};
let messageCount = 0;

function note(answer: string): void {
  answers[answer] = (answers[answer] ?? 0) + 1;
}

function newDelay(): number {
  return isResending ? 3_000 + Math.random() * 1_000 : Math.random() * 1_500;
}

/** Offers a message. `holder` is the message that has the key, as far as is known. */
async function offer(options: OfferOptions = {}, holder?: Entry): Promise<Entry> {
  const entry: Entry = [`${NAME} ${messageCount++}`, "once", 0];
  ledger.set(entry[0], entry);
  const sentAt = performance.now();
  try {
    const { deadline, outcome } = await queue.offer(entry[0], newDelay(), options);
    note(`offer: ${outcome}`);
    entry[2] = deadline;
    if (outcome === "existing") entry[1] = "never";
    if (outcome === "replaced" || outcome === "updated") (holder as Entry)[1] = "never";
    if (isResending && performance.now() > sentAt + LONGEST_OUTAGE) {
      note("offer: late answer");
      entry[1] = "any";
      if (holder !== undefined) holder[1] = "any";
    }
  } catch (error) {
    if (!(error instanceof OfferError)) throw error;
    note(`offer: ${error.effect}`);
    entry[1] = error.effect === "unknown" ? "unknown" : "never";
    if (error.effect === "unknown" && holder !== undefined) holder[1] = "unknown";
  }
  return entry;
}

/** Changes a message. If the reply is lost, `unclear` marks what is unknown then. */
async function change<Answer>(doing: Promise<Answer>, unclear: () => void) {
  try {
    return { answer: await doing };
  } catch (error) {
    if (!(error instanceof RedisError)) throw error;
    note(`change: ${error.reply ?? "unknown"}`);
    // A refusal has changed nothing.
    if (error.reply === undefined) unclear();
    return undefined;
  }
}

async function cancel(entry: Entry, key: string): Promise<void> {
  const done = await change(queue.cancel(key), () => (entry[1] = "unknown"));
  if (done === undefined) return;
  note(`cancel: ${done.answer}`);
  if (done.answer) entry[1] = "never";
}

async function reschedule(entry: Entry, key: string): Promise<void> {
  const done = await change(
    queue.reschedule(key, Math.random() * 1_000),
    // It may be due at the old or at the new deadline.
    () => (entry[2] = 0),
  );
  if (done === undefined) return;
  note(`reschedule: ${done.answer !== undefined}`);
  if (done.answer !== undefined) entry[2] = done.answer.deadline;
}

/** The life of one message with a key. */
async function live(key: string): Promise<void> {
  const entry = await offer({ key });
  if (entry[1] !== "once") return;
  const choice = Math.random();
  if (choice < 0.4) {
    const onDuplicate = (["replace", "update", "ignore"] as const)[Math.floor(choice / 0.14)];
    await sleep(Math.random() * 300);
    await offer({ key, onDuplicate: onDuplicate ?? "ignore" }, entry);
  } else if (choice < 0.9) {
    // Near its deadline, when it may just be moving.
    const remaining = entry[2] - (await line.serverTime());
    await sleep(Math.max(0, remaining * Math.min(1, Math.random() * 2) + Math.random() * 4 - 2));
    await (choice < 0.7 ? cancel(entry, key) : reschedule(entry, key));
  }
}

const stopping = new AbortController();
process.once("message", () => stopping.abort());
await line.serverTime();
await tell("ready");

const running = new Set<Promise<unknown>>();
function start(task: Promise<unknown>): void {
  running.add(task);
  void task.then(() => running.delete(task));
}
for (let n = 0; !stopping.signal.aborted; n++) {
  start(live(`${NAME}:${n}`));
  // In the same turn, so that they are sent together.
  for (let i = Math.floor(Math.random() * 5); i > 0; i--) start(offer());
  await sleep(Math.random() * 20);
}
await Promise.all(running);
await line.close();
const report: ProducerReport = { entries: [...ledger.values()], answers };
await tell(report);
hangUp();
