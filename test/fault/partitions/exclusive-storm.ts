import { appendFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { onTestFinished } from "vitest";
import type { Child } from "../../../scripts/child/child.ts";
import type { ReliableQueue } from "../../../src/index.ts";
import { PartitionNames } from "../../../src/partitions/ring/ring.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { bundle } from "../../helpers/bundle.ts";
import { startChild } from "../../helpers/child.ts";
import { newLineThatMayFail, type TestLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { missing } from "../../helpers/ledger.ts";
import { upTo } from "../../helpers/numbers.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";
import { judge, type Disturbances, type Rules, type Standstill } from "./exclusive-judge.ts";
import { FATAL, stormKeys, type StormNote, type StormOrder } from "./storm-note.ts";

/** How long a change may take after the last disturbance, in milliseconds. */
const CHANGE_WITHIN = 30_000;

/** How long the rest of the messages may take after that, in milliseconds. */
const HANDLED_WITHIN = 30_000;

const KEYS = upTo(12).map((n) => `k${n}`);

/** Milliseconds between two messages of a key. */
const INTERVAL = 400;

/** Processes that consume, at most. */
const MAX_CONSUMERS = 4;

export type EventKind =
  | "join"
  | "leave"
  | "kill"
  | "stop"
  | "blink"
  | "pause"
  | "change"
  | "two changes"
  | "change without consumers"
  | "killed change"
  | "redrive";

/** One event of the plan. All its chances are drawn beforehand, so that a seed always gives the same plan. */
export interface PlannedEvent {
  readonly kind: EventKind;
  /** Milliseconds of rest before it. */
  readonly rest: number;
  /** Picks the process. */
  readonly pick: number;
  /** Numbers of partitions. */
  readonly counts: readonly [number, number];
  /** A duration between 0 and 1, of which each kind has its own scale. */
  readonly length: number;
}

/** Every kind happens, at least once. Some are drawn more often. */
const EVERY: readonly EventKind[] = [
  "join",
  "leave",
  "kill",
  "stop",
  "blink",
  "pause",
  "change",
  "two changes",
  "change without consumers",
  "killed change",
  "redrive",
];
const OFTEN: readonly EventKind[] = [
  "join",
  "join",
  "leave",
  "kill",
  "stop",
  "change",
  "change",
  "pause",
];

/** Returns the plan of a seed. */
function planOf(seed: number, eventCount: number): PlannedEvent[] {
  const random = randomOf(seed);
  const kinds = [...EVERY];
  while (kinds.length < eventCount) kinds.push(OFTEN[Math.floor(random() * OFTEN.length)]!);
  // A shuffle.
  for (let i = kinds.length - 1; i > 0; i--) {
    const other = Math.floor(random() * (i + 1));
    [kinds[i], kinds[other]] = [kinds[other]!, kinds[i]!];
  }
  return kinds.map((kind) => ({
    kind,
    rest: 50 + random() * 700,
    pick: random(),
    counts: [1 + Math.floor(random() * 6), 1 + Math.floor(random() * 6)],
    length: random(),
  }));
}

export interface StormOptions {
  readonly seed: number;
  /** The Redis of the queue, and that of the ledger. */
  readonly url: string;
  readonly ledgerUrl: string;
  readonly strict: boolean;
  readonly eventCount: number;
}

/** A process that consumes, or could. */
interface Worker {
  readonly name: string;
  readonly child: Child;
  state: "spare" | "consuming" | "leaving" | "stopped" | "dead";
}

/** A storm over one queue, from an empty one to the verdict. */
export class ExclusiveStorm {
  readonly #options: StormOptions;
  readonly #name = uniqueName("storm");
  readonly #rules: Rules;
  readonly #redis: Redis;
  readonly #ledger: Redis;
  readonly #lines: readonly TestLine[];
  readonly #queue: ReliableQueue<StormOrder>;
  readonly #workers: Worker[] = [];
  readonly #stops: Standstill[] = [];
  readonly #kills: Disturbances["kills"][number][] = [];
  readonly #redrives: number[] = [];
  readonly #offered: string[] = [];
  readonly #changes: { readonly what: string; isOver: boolean; readonly over: Promise<void> }[] =
    [];
  readonly #changing: AbortController[] = [];
  /** Events that go on beside others. */
  readonly #aside: Promise<void>[] = [];
  readonly #ending = new AbortController();
  readonly #program: URL;
  readonly #changer: URL;
  #changers: Child[] = [];
  #isPaused = 0;
  readonly #faults: string[] = [];

  private constructor(options: StormOptions, program: URL, changer: URL) {
    this.#options = options;
    const { url, ledgerUrl, strict } = options;
    this.#rules = { strict, retry: [150, 300, 600], maxAttempts: 4 };
    this.#redis = newRedis(url);
    this.#ledger = newRedis(ledgerUrl);
    this.#lines = [0, 1].map(() => newLineThatMayFail({ redis: url, callTimeout: 20_000 }));
    const { retry, maxAttempts } = this.#rules;
    this.#queue = this.#lines[0]!.getReliableQueue<StormOrder>(this.#name, {
      partitions: 2,
      retry,
      maxAttempts,
      leaseTimeout: 5000,
    });
    this.#program = program;
    this.#changer = changer;
    onTestFinished(() => this.#ending.abort(new Error("the test has ended")));
  }

  static async run(options: StormOptions) {
    const programs = ["exclusive-storm-worker", "partitions-changer"].map((name) =>
      bundle(new URL(`../workers/${name}.ts`, import.meta.url)),
    );
    const [program, changer] = (await Promise.all(programs)) as [URL, URL];
    const storm = new ExclusiveStorm(options, program, changer);
    return await storm.#run();
  }

  async #run() {
    const plan = planOf(this.#options.seed, this.#options.eventCount);
    await this.#queue.size();
    for (let i = 0; i < 3; i++) await this.#spare();
    this.#changers = await Promise.all(
      plan.filter(({ kind }) => kind === "killed change").map(() => this.#startChanger()),
    );
    await this.#join();
    await this.#join();
    const offering = this.#offer();
    for (const event of plan) {
      await sleep(event.rest);
      // An event that hangs is a fault, but does not end the storm.
      await this.#bounded(`"${event.kind}"`, CHANGE_WITHIN, this.#cause(event));
    }
    await this.#calm(offering);
    const verdict = await this.#verdict();
    await this.#close();
    return verdict;
  }

  /** Ends what a long run must not gather. Whatever is left ends with the test. */
  async #close(): Promise<void> {
    for (const changing of this.#changing) changing.abort(new Error("the storm is over"));
    await Promise.all([
      ...this.#workers.map(({ child }) => child.kill()),
      ...this.#lines.map((line) => line.close()),
    ]);
    await Promise.all(this.#changes.map(({ over }) => over));
    this.#redis.disconnect();
    this.#ledger.disconnect();
  }

  /** Ends all disturbances, and waits until everything is as it should be. */
  async #calm(offering: Promise<void>): Promise<void> {
    this.#ending.abort();
    await offering;
    await Promise.all(this.#aside);
    await this.#bounded("resume", CHANGE_WITHIN, this.#queue.resume());
    while (this.#consuming.length < 2) await this.#join();

    await this.#eventually("every change ends", CHANGE_WITHIN, async () => {
      const hanging = this.#changes.filter(({ isOver }) => !isOver).map(({ what }) => what);
      const fact = await this.#redis.get(this.#keysOf(0).partitions);
      if (hanging.length > 0 || !fact?.includes(":stable")) {
        throw new Error(`${hanging.join(", ") || "no call"} under way, the fact is ${fact}`);
      }
    });
    // What a change holds up that hangs is no other fault.
    if (this.#faults.length > 0) return;
    await this.#eventually("every message is handled or dead", HANDLED_WITHIN, async () => {
      const settled = new Set(await this.#ledger.smembers(stormKeys(this.#name).done));
      for await (const { payload } of this.#queue.deadLetters) settled.add(idOf(payload!));
      const left = missing(this.#offered, settled);
      if (left.length > 0) {
        throw new Error(
          `${left.length} of ${this.#offered.length} are not: ${left.slice(0, 5).join(", ")}`,
        );
      }
    });
    // From now on no message fails.
    await this.#ledger.set(stormKeys(this.#name).calm, "1");
    await this.#eventually("redriven messages are handled", HANDLED_WITHIN, async () => {
      await this.#redrive();
      await sleep(200);
      const done = await this.#ledger.scard(stormKeys(this.#name).done);
      if (done < this.#offered.length) throw new Error(`${done} of ${this.#offered.length} are`);
    });
  }

  async #verdict() {
    const { log, done } = stormKeys(this.#name);
    const lines = await this.#ledger.lrange(log, 0, -1);
    const notes = lines.map((line) => {
      const [seconds = ""] = line.split(" ", 1);
      return {
        ...(JSON.parse(line.slice(seconds.length + 1)) as StormNote),
        at: Number(seconds) * 1000,
      };
    });
    const { EXCLUSIVE_LEDGER } = process.env;
    if (EXCLUSIVE_LEDGER !== undefined) {
      const events = {
        plan: planOf(this.#options.seed, this.#options.eventCount),
        stops: this.#stops,
      };
      const all = [{ ...events, kills: this.#kills, redrives: this.#redrives }, ...notes];
      await appendFile(EXCLUSIVE_LEDGER, all.map((one) => `${JSON.stringify(one)}\n`).join(""));
    }
    const isCalm = this.#faults.length === 0;
    const disturbances = { stops: this.#stops, kills: this.#kills, redrives: this.#redrives };
    const handled = await this.#ledger.smembers(done);
    return {
      counts: {
        offered: this.#offered.length,
        handled: handled.length,
        runs: notes.filter(({ what }) => what === "start").length,
        stalls: notes.filter(({ what }) => what === "stall").length,
      },
      faults: {
        late: this.#faults,
        lost: isCalm ? missing(this.#offered, handled) : [],
        invented: missing(handled, this.#offered),
        ...judge(notes, disturbances, this.#rules),
      },
    };
  }

  /** Offers messages until the storm is over. */
  async #offer(): Promise<void> {
    const random = randomOf(this.#options.seed + 1);
    for (let number = 0; !this.#ending.signal.aborted; number++) {
      const orders = KEYS.map((key): StormOrder => {
        const luck = random();
        const fails = luck < 0.007 ? FATAL : luck < 0.03 ? 1 + Math.floor(random() * 2) : 0;
        return { key, number, duration: 2 + random() * 16, fails, offered: Date.now() };
      });
      // Half of the keys wait; all messages of a key equally long.
      const rows = orders.map((payload, n) => ({
        payload,
        delay: n % 2 === 0 ? 0 : 700,
        partitionKey: payload.key,
      }));
      await this.#queue.offerMany(rows);
      this.#offered.push(...orders.map(idOf));
      await sleep(INTERVAL);
    }
  }

  get #consuming(): Worker[] {
    return this.#workers.filter(({ state }) => state === "consuming");
  }

  async #cause({ kind, pick, counts, length }: PlannedEvent): Promise<void> {
    const consuming = this.#consuming;
    const worker = consuming[Math.floor(pick * consuming.length)];
    const [count, other] = counts;
    switch (kind) {
      case "join":
        if (consuming.length < MAX_CONSUMERS) await this.#join();
        return;
      case "leave":
        if (worker !== undefined) this.#aside.push(this.#leave(worker));
        return;
      case "kill":
        if (worker !== undefined) await this.#kill(worker);
        return;
      case "stop":
        if (worker !== undefined) this.#aside.push(this.#stop(worker, 2600 + 1500 * length));
        return;
      case "blink":
        if (worker !== undefined) this.#aside.push(this.#stop(worker, 100 + 500 * length));
        return;
      case "pause":
        this.#aside.push(this.#pause(100 + 1500 * length));
        return;
      case "change":
        this.#change(count, 0);
        return;
      case "two changes":
        this.#change(count, 0);
        this.#change(other, 1);
        return;
      case "change without consumers": {
        // Those that stand still come back first.
        await Promise.all(this.#aside);
        await Promise.all(this.#consuming.map((one) => this.#leave(one)));
        if (length < 0.5) {
          for (const n of upTo(6)) await this.#forgetHolder(n);
        }
        // Meanwhile messages become ready that nobody takes.
        await sleep(900 * pick);
        this.#change(count, 1);
        await sleep(600 * length);
        await this.#join();
        await this.#join();
        return;
      }
      case "killed change": {
        const changer = this.#changers.pop()!;
        await changer.send(count);
        await sleep(60 * length);
        await changer.kill();
        return;
      }
      case "redrive":
        await this.#redrive();
    }
  }

  /**
   * Deletes what Redis knows of the holders of a partition that nobody holds, and for which no holder has left a message
   * in flight: which message comes first is known nowhere else.
   */
  async #forgetHolder(partition: number): Promise<void> {
    const { holder } = this.#keysOf(partition);
    // A process that was killed or stopped may still hold it.
    const [held, orphans] = await this.#redis.hmget(holder, "holder", "orphans");
    if (held === null && (orphans ?? "") === "") await this.#redis.del(holder);
  }

  async #join(): Promise<void> {
    const worker = this.#workers.find(({ state }) => state === "spare") ?? (await this.#spare());
    worker.state = "consuming";
    await worker.child.send("join");
    await worker.child.next((word) => word === "joined");
  }

  async #leave(worker: Worker): Promise<void> {
    worker.state = "leaving";
    await worker.child.send("leave");
    const leaving = worker.child.next((word) => word === "left").then(() => undefined);
    await this.#bounded(`"leave" of ${worker.name}`, CHANGE_WITHIN, leaving);
    worker.state = "spare";
  }

  async #kill(worker: Worker): Promise<void> {
    worker.state = "dead";
    this.#kills.push({ by: worker.name, at: Date.now() });
    await worker.child.kill();
    await this.#spare();
  }

  async #stop(worker: Worker, duration: number): Promise<void> {
    worker.state = "stopped";
    const from = Date.now();
    process.kill(worker.child.pid, "SIGSTOP");
    await sleep(duration);
    process.kill(worker.child.pid, "SIGCONT");
    this.#stops.push({ by: worker.name, from, to: Date.now() });
    worker.state = "consuming";
  }

  async #pause(duration: number): Promise<void> {
    this.#isPaused++;
    await this.#queue.pause();
    await sleep(duration);
    if (--this.#isPaused === 0) {
      await this.#bounded("resume", CHANGE_WITHIN, this.#queue.resume());
    }
  }

  async #redrive(): Promise<void> {
    this.#redrives.push(Date.now());
    await this.#queue.deadLetters.redrive("all");
  }

  /** Begins a change, and does not wait for it. */
  #change(count: number, by: number): void {
    const ending = new AbortController();
    this.#changing.push(ending);
    const { signal } = ending;
    const what = `setPartitions(${count})`;
    const changing = this.#lines[by]!.setPartitions(this.#name, count, { signal });
    const over = changing.then(
      () => {},
      (error: unknown) => {
        if (!signal.aborted) this.#faults.push(`${what} rejected: ${String(error)}`);
      },
    );
    const change = { what, isOver: false, over };
    void over.then(() => (change.isOver = true));
    this.#changes.push(change);
  }

  async #spare(): Promise<Worker> {
    const { url, ledgerUrl, strict } = this.#options;
    const name = `worker ${this.#workers.length}`;
    const { retry, maxAttempts } = this.#rules;
    const child = startChild(this.#program, {
      env: {
        REDIS: url,
        LEDGER: ledgerUrl,
        QUEUE: this.#name,
        NAME: name,
        STRICT: strict ? "yes" : "no",
        RETRY: JSON.stringify(retry),
        MAX_DELIVERIES: String(maxAttempts),
      },
    });
    const worker: Worker = { name, child, state: "leaving" };
    this.#workers.push(worker);
    await child.next((word) => word === "loaded");
    worker.state = "spare";
    return worker;
  }

  async #startChanger(): Promise<Child> {
    const env = { REDIS: this.#options.url, QUEUE: this.#name, AFTER: "Infinity" };
    const child = startChild(this.#changer, { env });
    await child.next((word) => word === "loaded");
    return child;
  }

  #keysOf(partition: number) {
    return queueKeys(new PartitionNames(this.#name).at(partition));
  }

  /** Waits for a condition; notes a fault if it does not hold in time. */
  async #eventually(what: string, within: number, condition: () => Promise<void>): Promise<void> {
    try {
      await eventually(
        async () => {
          await condition();
          await sleep(20);
        },
        { within, what },
      );
    } catch (error) {
      this.#faults.push((error as Error).message);
    }
  }

  /** Waits for an action; notes a fault if it fails, or takes too long. */
  async #bounded(what: string, within: number, action: Promise<void>): Promise<void> {
    const late = sleep(within, "late" as const, { ref: false });
    try {
      if ((await Promise.race([action, late])) === "late") {
        this.#faults.push(`${what} is not over after ${within} ms`);
      }
    } catch (error) {
      this.#faults.push(`${what}: ${String(error)}`);
    }
  }
}

/** A source of chance: numbers from 0 to 1, always the same ones for a seed (mulberry32). */
function randomOf(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

const idOf = ({ key, number }: StormOrder) => `${key}:${number}`;
