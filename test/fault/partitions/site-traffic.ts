import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import {
  OfferError,
  RedisError,
  RejectError,
  type DelaylineError,
  type DelaylineOptions,
  type Delivery,
} from "../../../src/index.ts";
import { newLineThatMayFail, type TestLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { uniqueName } from "../../helpers/redis.ts";
import { fateOf } from "../reliable/group-traffic.ts";
import { wrongsOf, type Fortune, type Wrongs } from "./fortunes.ts";

/** Milliseconds between two offers: a hundred a second. */
const INTERVAL = 10;

/** Milliseconds that a call may take here: longer than any failover. */
const OUTLAST = 60_000;

/** The shortest and the longest delay of a message, in milliseconds. */
const DELAYS = [50, 250] as const;

/** How many messages a consumer handles at once. */
export const CONCURRENCY = 8;

/** How both kinds are opened, in other processes, too. A lease outlasts any pause of a server. */
export const SETTINGS = { codec: "string", leaseTimeout: 4000, retry: [100] } as const;

export type Kind = "plain" | "reliable";

/** How payloads begin, so that the wire can recognise them. */
const MARKS = { plain: "p", reliable: "r" } as const satisfies Record<Kind, string>;

/** A queue in partitions: a producer that cancels some messages, two consumers, and the history of each message. */
export class SiteTraffic {
  readonly name = uniqueName("partitions");
  readonly kind: Kind;
  readonly fortunes: Fortune[] = [];
  /** Milliseconds by which delays are longer, to offer across an outage. */
  moreDelay = 0;
  /** Milliseconds that each client took to close. */
  readonly closings: number[] = [];
  /** Messages held by another process, or held when it was killed. */
  readonly abroad = new Set<number>();
  readonly #options: DelaylineOptions;
  readonly #partitions: number;
  readonly #consumers: TestLine[] = [];
  /** Closed clients. */
  readonly #former: TestLine[] = [];
  readonly #inHand = new Set<Fortune>();
  readonly #calls = new Set<Promise<unknown>>();
  #producer: TestLine;
  /** The number of the first message whose errors and rejections count. */
  #renewedAt = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(redis: NonNullable<DelaylineOptions["redis"]>, kind: Kind, partitions: number) {
    this.kind = kind;
    this.#options = { redis };
    this.#partitions = partitions;
    this.#producer = this.#newProducer();
    for (let i = 0; i < 2; i++) this.#consume();
  }

  /** The errors that the clients have reported. */
  get errors(): DelaylineError[] {
    const lines = [this.#producer, ...this.#consumers, ...this.#former];
    return lines.flatMap(({ errors }) => errors);
  }

  /** Why offers were rejected. */
  get rejections(): unknown[] {
    return this.fortunes.slice(this.#renewedAt).flatMap(({ rejection }) => rejection ?? []);
  }

  /** The errors of open clients that are not over. */
  get troubles(): string[] {
    return [this.#producer, ...this.#consumers].flatMap(({ errors, recoveries }) => {
      const over = new Set<Error>(recoveries.map(({ error }) => error));
      return errors.filter((error) => !over.has(error)).map(String);
    });
  }

  /** Offers messages until {@link pause}. */
  resume(): void {
    this.#timer ??= setInterval(() => this.#track(this.#live()), INTERVAL);
  }

  pause(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Offers `count` messages, delayed by `delay` milliseconds. */
  async offerMany(count: number, delay: number): Promise<void> {
    await Promise.all(Array.from({ length: count }, () => this.#offer(delay)));
  }

  /** Resolves when `count` messages have arrived that were offered after this call. */
  async isFlowing(count = 10): Promise<void> {
    const from = this.fortunes.length;
    const arrived = () => this.fortunes.slice(from).filter(({ isDone }) => isDone).length;
    await eventually(() => arrived() >= count, { within: 30_000, what: "messages flow" });
  }

  /** See {@link Fortune.isWrittenOff}. */
  writeOff(some: readonly number[]): void {
    for (const n of some) (this.fortunes[n] as Fortune).isWrittenOff = true;
  }

  /** Closes the producer and the consumers after others have taken their places. */
  async replaceClients(): Promise<void> {
    const former = [this.#producer, ...this.#consumers.splice(0)];
    this.#producer = this.#newProducer();
    for (let i = 0; i < 2; i++) this.#consume();
    this.#former.push(...former);
    await Promise.all(former.map((line) => this.#close(line)));
  }

  /** Replaces all clients, and forgets what the old ones reported. */
  async renew(): Promise<void> {
    await this.replaceClients();
    this.#former.length = 0;
    this.#renewedAt = this.fortunes.length;
  }

  /** Notes that another process, which is to be killed, began to handle a message or finished it. */
  note(n: number, what: "start" | "done", attempt: number): void {
    const fortune = this.fortunes[n] as Fortune;
    fortune.wasAbroad = true;
    if (what === "start") {
      fortune.starts.push({ attempt, at: Date.now() });
      this.abroad.add(n);
    } else {
      fortune.isDone = true;
      this.abroad.delete(n);
    }
  }

  /** Stops offering. Resolves when every call is settled. */
  async stop(): Promise<void> {
    this.pause();
    while (this.#calls.size > 0) await Promise.all(this.#calls);
  }

  /** Stops offering, and waits until Redis holds no message and every call is settled. Returns what is wrong. */
  async settle(): Promise<Wrongs> {
    await this.stop();
    const [line] = this.#consumers as [TestLine];
    await eventually(
      async () => {
        for (const one of await line.partitions(this.name)) {
          expect(one).toMatchObject({ delayed: 0, retries: 0, ready: 0, inFlight: 0 });
        }
      },
      { within: 15_000, what: `nothing of ${this.kind} is stuck` },
    );
    await eventually(() => this.#inHand.size === 0, { what: "handlers are done" });
    return this.wrongs;
  }

  get wrongs(): Wrongs {
    return wrongsOf(this.fortunes, this.kind);
  }

  /** The dead letters that exist, and those that had to. A plain queue has none. */
  async dead(): Promise<{ readonly wanted: number[]; readonly found: number[] }> {
    const wanted = this.fortunes.filter(({ wasRejected }) => wasRejected);
    const found = new Set<number>();
    if (this.kind === "reliable") {
      const { deadLetters } = this.#openReliable(this.#consumers[0] as TestLine);
      for await (const { payload } of deadLetters) found.add(numberOf(payload as string));
    }
    return { wanted: wanted.map(({ n }) => n), found: [...found].toSorted((a, b) => a - b) };
  }

  #newProducer(): TestLine {
    return newLineThatMayFail({ ...this.#options, transfer: false, callTimeout: OUTLAST });
  }

  #consume(): void {
    const line = newLineThatMayFail(this.#options);
    this.#consumers.push(line);
    if (this.kind === "plain") {
      const queue = line.getBlockingQueue<string>(this.name, this.#settings);
      queue.subscribe((payload) => this.#handle(payload), { concurrency: CONCURRENCY });
    } else {
      this.#openReliable(line).subscribe((payload, delivery) => this.#handle(payload, delivery), {
        concurrency: CONCURRENCY,
        onError: () => {},
      });
    }
  }

  get #settings() {
    return { codec: SETTINGS.codec, partitions: this.#partitions };
  }

  #openReliable(line: TestLine) {
    return line.getReliableQueue<string>(this.name, { ...SETTINGS, partitions: this.#partitions });
  }

  get #queue() {
    if (this.kind === "reliable") return this.#openReliable(this.#producer);
    return this.#producer.getDelayedQueue<string>(this.name, this.#settings);
  }

  async #handle(payload: string, delivery?: Delivery<string>): Promise<void> {
    const fortune = this.fortunes[numberOf(payload)] as Fortune;
    const attempt = delivery?.attempt ?? 1;
    fortune.starts.push({ attempt, at: Date.now() });
    this.#inHand.add(fortune);
    await sleep(Math.random() * 5);
    this.#inHand.delete(fortune);
    if (delivery !== undefined && attempt === 1) {
      if (fortune.fate === "throw") throw new Error("bad luck");
      if (fortune.fate === "nack") {
        await delivery.nack({ delay: 50 });
        return;
      }
    }
    fortune.isDone = true;
    if (delivery === undefined || fortune.fate !== "reject") return;
    fortune.wasRejected = true;
    throw new RejectError("hopeless");
  }

  /** Offers one message, and cancels one in five of them sooner or later. */
  async #live(): Promise<void> {
    const [least, most] = DELAYS;
    const delay = least + Math.random() * (most - least) + this.moreDelay;
    const fortune = await this.#offer(delay);
    if (fortune.n % 5 !== 4 || fortune.acknowledgedAt === undefined) return;
    await sleep(Math.random() * delay);
    fortune.wasCancelled = "unknown";
    try {
      fortune.wasCancelled = await this.#queue.cancel(keyOf(fortune));
    } catch (error) {
      if (!(error instanceof RedisError)) throw error;
      if (error.effect === "none") fortune.wasCancelled = false;
    }
  }

  async #offer(delay: number): Promise<Fortune> {
    const n = this.fortunes.length;
    const fate = this.kind === "plain" ? "ack" : fateOf(n);
    const fortune: Fortune = { n, fate, dueAt: Date.now() + delay, starts: [], isDone: false };
    this.fortunes.push(fortune);
    try {
      const payload = `${MARKS[this.kind]}${n};`;
      const { deadline } = await this.#queue.offer(payload, delay, { key: keyOf(fortune) });
      fortune.acknowledgedAt = Date.now();
      fortune.deadline = deadline;
    } catch (error) {
      if (!(error instanceof OfferError)) throw error;
      fortune.rejection = error;
    }
    return fortune;
  }

  #track(call: Promise<unknown>): void {
    this.#calls.add(call);
    void call.finally(() => this.#calls.delete(call));
  }

  async #close(line: TestLine): Promise<void> {
    const startedAt = performance.now();
    await line.close();
    this.closings.push(performance.now() - startedAt);
  }
}

/** The number of a message, from its payload. */
function numberOf(payload: string): number {
  return Number(payload.slice(1, -1));
}

function keyOf({ n }: Fortune): string {
  return `key-${n}`;
}
