import { setTimeout as sleep } from "node:timers/promises";
import { onTestFinished } from "vitest";
import type { Delivery, ReliableQueue, ReliableQueueOptions } from "../../../src/index.ts";
import { PartitionNames } from "../../../src/partitions/ring/ring.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { newLine, type TestLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { missing, repeated } from "../../helpers/ledger.ts";
import { upTo } from "../../helpers/numbers.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";

/** A message: the `number`-th one of its key. */
export interface Order {
  readonly key: string;
  readonly number: number;
}

export interface SceneOptions {
  readonly strict?: boolean;
  /** Milliseconds that a handler takes. Defaults to 20. */
  readonly duration?: number;
  /** How many keys messages have. Defaults to 8. */
  readonly keyCount?: number;
  /** How many partitions the queue has at first. Defaults to 1. */
  readonly partitions?: number;
}

/** Milliseconds that a change may take when nothing is in its way. */
export const CHANGE_WITHIN = 15_000;

/**
 * A reliable queue in partitions that is consumed exclusively, and the ledger of its handlers.
 *
 * Each consumer is a client of its own: clients treat each other as processes. All of them say that the queue has
 * `partitions` partitions, as a deployed configuration does whatever the number became since.
 */
export class ExclusiveScene {
  readonly name = uniqueName("exclusive");
  readonly redis = newRedis();
  /** A client that offers and transfers, and consumes nothing. */
  readonly producer = newLine();
  readonly offered: string[] = [];
  readonly handled: string[] = [];
  /** Handlers that began while another one of the same key ran. */
  readonly overlaps: string[] = [];
  /** Messages that were handled after a later one of the same key. */
  readonly disordered: string[] = [];
  /** Writes that a store refused which had seen a larger fence for the same key. */
  readonly refusedWrites: string[] = [];
  readonly #running = new Map<string, string>();
  /** The id of the latest message of each key. */
  readonly #last = new Map<string, string>();
  readonly #fences = new Map<string, number>();
  readonly #numbers = new Map<string, number>();
  readonly #options: Required<SceneOptions>;

  constructor({ strict = false, duration = 20, keyCount = 8, partitions = 1 }: SceneOptions = {}) {
    this.#options = { strict, duration, keyCount, partitions };
  }

  /** Opens the queue without consuming it. */
  open(line: TestLine = this.producer): ReliableQueue<Order> {
    return line.getReliableQueue<Order>(this.name, this.#queueOptions);
  }

  /** Starts a consumer in a client of its own, and returns that client. */
  join(line: TestLine = newLine()): TestLine {
    const by = `client ${this.#joined++}`;
    const { strict } = this.#options;
    const options = { ...this.#queueOptions, exclusive: true, strict, retry: [100] };
    line
      .getReliableQueue<Order>(this.name, options)
      .subscribe((order, delivery) => this.#handle(by, order, delivery));
    return line;
  }

  #joined = 0;

  /** Offers the next `count` messages of each key, or of the first `keyCount` ones. */
  async offer(count = 1, delay = 0, keyCount = this.#options.keyCount): Promise<void> {
    const queue = this.open();
    for (let i = 0; i < count; i++) {
      const orders = upTo(keyCount).map((n): Order => {
        const key = `k${n}`;
        const number = this.#numbers.get(key) ?? 0;
        this.#numbers.set(key, number + 1);
        return { key, number };
      });
      await queue.offerMany(
        orders.map((order) => ({ payload: order, delay, partitionKey: order.key })),
      );
      this.offered.push(...orders.map(idOf));
    }
  }

  /** Offers one message of each of `keyCount` keys every so many milliseconds. Returns a function that ends it. */
  beginOffering(interval: number, keyCount?: number): () => Promise<void> {
    const ending = new AbortController();
    onTestFinished(() => ending.abort());
    const offering = (async () => {
      while (!ending.signal.aborted) {
        await this.offer(1, 0, keyCount);
        await sleep(interval);
      }
    })();
    return async () => {
      ending.abort();
      await offering;
    };
  }

  /** Waits until this many messages of each key are ready. */
  async ready(count: number): Promise<void> {
    await eventually(
      async () => {
        const all = await this.producer.partitions(this.name);
        return all.reduce((sum, { ready }) => sum + ready, 0) === count * this.#options.keyCount;
      },
      { what: `${count} messages of each key are ready` },
    );
  }

  /** Waits until every partition has a holder. */
  async held(): Promise<void> {
    await eventually(
      async () => {
        const all = await this.producer.partitions(this.name);
        return all.every(({ holder }) => holder !== undefined);
      },
      { what: "every partition is held" },
    );
  }

  /** Waits until a partition has a holder, or no change is under way any more. */
  async heldInPart(): Promise<void> {
    await eventually(
      async () => {
        if (await this.isStable()) return true;
        const all = await this.producer.partitions(this.name);
        return all.some(({ holder }) => holder !== undefined);
      },
      { what: "a partition is held" },
    );
  }

  /** Changes the number. The change is given up when the test ends, even if it would wait for ever. */
  setPartitions(
    count: number,
    line: TestLine = this.producer,
    onProgress: () => void = () => {},
  ): Promise<void> {
    const ending = new AbortController();
    onTestFinished(() => ending.abort(new Error("the test has ended")));
    const changing = line.setPartitions(this.name, count, { signal: ending.signal, onProgress });
    // It may be awaited later.
    changing.catch(() => {});
    return changing;
  }

  /** The record of the partitions beside partition 0. */
  async fact(): Promise<string> {
    return (await this.redis.get(this.keysOf(0).partitions)) ?? "";
  }

  async isStable(): Promise<boolean> {
    return (await this.fact()).includes(":stable");
  }

  /** Waits until this change is under way. A quick one may be over by then. */
  async moving(changing: Promise<void>): Promise<void> {
    let isOver = false;
    const note = () => (isOver = true);
    changing.then(note, note);
    await eventually(async () => isOver || !(await this.isStable()), {
      what: "a change has begun",
    });
  }

  /** Waits until no change is under way, and returns the number of partitions. */
  async stable(patience = CHANGE_WITHIN): Promise<number> {
    await eventually(() => this.isStable(), { within: patience, what: "the change has ended" });
    return (await this.producer.partitions(this.name)).length;
  }

  keysOf(partition: number) {
    return queueKeys(new PartitionNames(this.name).at(partition));
  }

  /** Waits until every message offered so far was handled. */
  async allHandled(patience = 20_000): Promise<void> {
    await eventually(() => missing(this.offered, this.handled).length === 0, {
      within: patience,
      what: "every message is handled",
    }).catch((error: unknown) => {
      const left = missing(this.offered, this.handled);
      const text = `${left.length} of ${this.offered.length} messages are not handled after ${patience} ms`;
      throw new Error(`${text}: ${left.slice(0, 8).join(", ")}`, { cause: error });
    });
  }

  /** @throws {Error} that says what went wrong so far, if anything did. */
  judge(): void {
    const faults = {
      twice: repeated(this.handled),
      invented: missing(this.handled, this.offered),
      overlaps: this.overlaps,
      disordered: this.disordered,
      refusedWrites: this.refusedWrites,
    };
    const found = Object.entries(faults).filter(([, all]) => all.length > 0);
    const texts = found.map(([what, all]) => `${all.length} ${what}, such as ${all[0]}`);
    if (texts.length > 0) throw new Error(texts.join("; "));
  }

  get #queueOptions(): ReliableQueueOptions<Order> & { partitions: number } {
    return { partitions: this.#options.partitions, leaseTimeout: 5000 };
  }

  async #handle(
    by: string,
    order: Order,
    { id, fence = 0, attempt }: Delivery<Order>,
  ): Promise<void> {
    const { key } = order;
    const self = `${idOf(order)} by ${by} (attempt ${attempt}, fence ${fence})`;
    const other = this.#running.get(key);
    if (other !== undefined) this.overlaps.push(`${self} during ${other}`);
    this.#running.set(key, self);
    const last = this.#last.get(key) ?? id;
    if (isBefore(id, last)) this.disordered.push(`${self}, ${id}, after ${last}`);
    this.#last.set(key, isBefore(id, last) ? last : id);
    await sleep(this.#options.duration);
    // What a store does to which each handler sends its fence.
    const greatest = this.#fences.get(key) ?? 0;
    if (fence < greatest) this.refusedWrites.push(`${self} after ${greatest}`);
    this.#fences.set(key, Math.max(fence, greatest));
    this.#running.delete(key);
    this.handled.push(idOf(order));
  }
}

/** Rejects if the promise does not settle in time. */
export async function within<T>(ms: number, what: string, promise: Promise<T>): Promise<T> {
  const late = new AbortController();
  const timeout = sleep(ms, undefined, { signal: late.signal }).then(
    () => {
      throw new Error(`${what}: not within ${ms} ms`);
    },
    () => undefined as never,
  );
  try {
    return await Promise.race([promise, timeout]);
  } finally {
    late.abort();
  }
}

/** Whether a message is due before another one, or was offered before it with the same deadline. */
function isBefore(a: string, b: string): boolean {
  const [deadline, rest = ""] = a.split("-");
  const [otherDeadline, otherRest = ""] = b.split("-");
  return deadline === otherDeadline ? rest < otherRest : Number(deadline) < Number(otherDeadline);
}

const idOf = ({ key, number }: Order) => `${key}:${number}`;
