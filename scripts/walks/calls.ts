import { type Delayline, RejectError } from "../../src/index.ts";
import type { Redis } from "ioredis";

/** A call whose way through the files of `src/` is of interest. */
export interface NamedCall {
  readonly name: string;
  /**
   * Prepares the queue `name`, which no other call uses, and returns the call. It resolves when all that belongs to the
   * call has been done. What other processes would do comes from `redis`, past the library.
   */
  readonly prepare: (line: Delayline, redis: Redis, name: string) => Promise<Step>;
}

/** Makes the call once. What has to be done first is not a part of the walk. */
export interface Step {
  readonly before?: () => Promise<void>;
  readonly make: () => Promise<unknown>;
}

/** Long enough that no message becomes due. */
const DELAY = 3_600_000;

const PARTITIONS = 8;

/** The calls in the order of the table. */
export const CALLS: readonly NamedCall[] = [
  {
    name: "offer",
    prepare: async (line, _redis, name) => {
      const queue = line.getDelayedQueue<string>(name);
      return { make: () => queue.offer("x", DELAY) };
    },
  },
  {
    name: "offer, keyed",
    prepare: async (line, _redis, name) => offerKeyed(line, name),
  },
  {
    name: `offer, keyed, ${PARTITIONS} partitions`,
    prepare: async (line, _redis, name) => {
      await line.setPartitions(name, PARTITIONS);
      return offerKeyed(line, name);
    },
  },
  {
    name: "BLPOP -> plain handler",
    prepare: async (line, redis, name) => {
      const handled = new Signal();
      line.getBlockingQueue<string>(name).subscribe(() => handled.give());
      const push = () => redis.rpush(name, JSON.stringify("x"));
      // Until the reply the next block has been sent.
      return { make: () => handled.after(push).then(() => redis.ping()) };
    },
  },
  {
    name: "XREADGROUP -> handler -> ack",
    prepare: async (line, redis, name) => handle(line, redis, name, () => {}),
  },
  {
    name: "- handler throws -> retry-later",
    prepare: async (line, redis, name) =>
      handle(line, redis, name, () => {
        throw new Error("failed");
      }),
  },
  {
    name: "- handler rejects -> dead letter",
    prepare: async (line, redis, name) =>
      handle(line, redis, name, () => {
        throw new RejectError("never");
      }),
  },
  {
    name: "cancel(key)",
    prepare: async (line, _redis, name) => cancelByKey(line, name),
  },
  {
    name: `cancel(key), ${PARTITIONS} partitions`,
    prepare: async (line, _redis, name) => {
      await line.setPartitions(name, PARTITIONS);
      return cancelByKey(line, name);
    },
  },
  {
    name: "schedules.upsert",
    prepare: async (line, _redis, name) => {
      // Without the planner, which would begin at once.
      const { schedules } = line.getDelayedQueue<string>(name, { transfer: false });
      let every = DELAY;
      return {
        make: () => schedules.upsert("pulse", { every: (every += 1000), payload: "x" }),
      };
    },
  },
];

function offerKeyed(line: Delayline, name: string): Step {
  const queue = line.getDelayedQueue<string>(name);
  let n = 0;
  return { make: () => queue.offer("x", DELAY, { key: `key-${n++}` }) };
}

/** A message of a reliable queue reaches a handler, and is settled. */
async function handle(
  line: Delayline,
  redis: Redis,
  name: string,
  handler: () => void,
): Promise<Step> {
  const handled = new Signal();
  const entries = await Entries.of(line, redis, name);
  line.getReliableQueue<string>(name, { retry: { initial: DELAY } }).subscribe(() => {
    handled.give();
    handler();
  });
  return { make: () => handled.after(() => entries.append()).then(() => entries.areSettled()) };
}

function cancelByKey(line: Delayline, name: string): Step {
  const queue = line.getDelayedQueue<string>(name);
  return {
    before: async () => void (await queue.offer("x", DELAY, { key: "key" })),
    make: () => queue.cancel("key"),
  };
}

/** Tells that a handler has begun. */
class Signal {
  #give: () => void = () => {};

  give(): void {
    this.#give();
  }

  /** Resolves when it is given after this has been started. */
  async after(start: () => Promise<unknown>): Promise<void> {
    const given = new Promise<void>((resolve) => (this.#give = resolve));
    await start();
    await given;
  }
}

/** Entries of a stream as another process's transfer appends them. */
class Entries {
  readonly #redis: Redis;
  readonly #stream: string;
  readonly #fields: readonly Buffer[];

  private constructor(redis: Redis, stream: string, fields: readonly Buffer[]) {
    this.#redis = redis;
    this.#stream = stream;
    this.#fields = fields;
  }

  /** Makes the queue reliable, and copies what a message of its looks like. */
  static async of(line: Delayline, redis: Redis, name: string): Promise<Entries> {
    const queue = line.getReliableQueue<string>(name);
    await queue.offer("x", 0);
    const delivery = await queue.take();
    const stream = `delayline_stream:{${name}}`;
    const [entry] = await redis.xrangeBuffer(stream, "-", "+", "COUNT", 1);
    await delivery.ack();
    return new Entries(redis, stream, entry?.[1] ?? []);
  }

  async append(): Promise<void> {
    await this.#redis.xadd(this.#stream, "*", ...this.#fields);
  }

  /** Resolves when nothing is in flight any more. */
  async areSettled(): Promise<void> {
    while ((await this.#redis.xlen(this.#stream)) > 0) await this.#redis.ping();
  }
}
