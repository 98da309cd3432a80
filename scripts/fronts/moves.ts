import type { Redis } from "ioredis";
import { queueKeys } from "../../src/queue/keys.ts";
import { createId, packAddress, packMember } from "../../src/queue/message/message.ts";

/** One run of a script: its name, what has to be there before it, and its arguments. */
export interface Move {
  readonly name: string;
  /** The file and the export, in `src/lua`. `form`: of a pair for plain and reliable queues. */
  readonly of: readonly [file: string, name: string, form?: "list" | "stream"];
  /** Called before each run. Returns the arguments and the rows. */
  readonly prepare: (ground: Ground) => Promise<{ args: Args; rows?: readonly Args[] }>;
}

type Args = Readonly<Record<string, string | number | Buffer>>;

/** The keys of a queue, by the names that scripts have for them. */
export const keys = queueKeys("fronts");

const PAYLOAD = Buffer.alloc(100, "a");

/** The ground on which moves run: a queue with messages of 100 bytes. */
export class Ground {
  #count = 0;

  constructor(private readonly redis: Redis) {}

  /** A member with a new id, and with a business key if one is given. */
  member(key = ""): Buffer {
    return packMember(this.#id(), PAYLOAD, key);
  }

  /** A business key that no message has. */
  key(): string {
    return `key ${this.#count++}`;
  }

  /** Delays messages; returns their addresses. */
  async delay(count: number, deadline: number): Promise<Buffer[]> {
    const pipeline = this.redis.pipeline();
    const members = Array.from({ length: count }, () => this.member());
    for (const member of members) pipeline.zadd(keys.timeouts, deadline, member);
    await pipeline.exec();
    return members.map((member) => packAddress(deadline, member.subarray(1, 17)));
  }

  /** Gives entries to the consumer `c` of the group `g`; returns their ids. */
  async deliver(count: number): Promise<string[]> {
    await this.openGroup();
    const { stream } = keys;
    const pipeline = this.redis.pipeline();
    for (let i = 0; i < count; i++) {
      pipeline.xadd(stream, "*", "a", packAddress(1, this.#id()), "p", PAYLOAD);
    }
    await pipeline.exec();
    const read = await this.redis.xreadgroup(
      "GROUP",
      "g",
      "c",
      "COUNT",
      count,
      "STREAMS",
      stream,
      ">",
    );
    return (read as [string, [string, string[]][]][])[0]![1].map(([id]) => id);
  }

  async openGroup(): Promise<void> {
    await this.redis.xgroup("CREATE", keys.stream, "g", "0", "MKSTREAM").catch(() => {});
  }

  #id(): Buffer {
    return createId(Date.now() * 1000 + this.#count++);
  }
}

const offerArgs = { channel: "c", elementsAre: "addresses" };
const held = (count: number) => ({ channel: "c", group: "g", consumer: "c", heldCount: count });
const moving = { known: 0, mark: 0, limit: 100, grace: 0, claim: 0, task: "t" };
const TRANSFER = { ...moving, elementsAre: "addresses" };

const repeat = <Item>(count: number, item: () => Item): Item[] =>
  Array.from({ length: count }, item);

const keyedRow = (ground: Ground, key: string, rule: string) => ({
  member: ground.member(key),
  delay: 60_000,
  deadline: "",
  key,
  rule,
  maxWait: "",
});

/** Moves of so many messages at once. */
const movesOf = (count: number): Move[] => [
  {
    name: `offer, ${count}`,
    of: ["delayed/offer.ts", "offer"],
    prepare: async (ground) => ({
      args: offerArgs,
      rows: repeat(count, () => ({ member: ground.member(), delay: 60_000, deadline: "" })),
    }),
  },
  {
    name: `offer-keyed, ${count}`,
    of: ["delayed/offer-keyed.ts", "offerKeyed"],
    prepare: async (ground) => ({
      args: offerArgs,
      rows: repeat(count, () => keyedRow(ground, ground.key(), "ignore")),
    }),
  },
  {
    name: `remove by id, ${count}`,
    of: ["delayed/remove.ts", "remove"],
    prepare: async (ground) => ({
      args: { elementsAre: "addresses" },
      rows: (await ground.delay(count, 9e12)).map((id) => ({ id, key: "" })),
    }),
  },
  {
    name: `transfer, ${count}`,
    of: ["delayed/transfer.ts", "transfer", "list"],
    prepare: async (ground) => {
      await ground.delay(count, 1);
      return { args: { ...TRANSFER, makes: 0 } };
    },
  },
  {
    name: `transfer-to-stream, ${count}`,
    of: ["delayed/transfer.ts", "transfer", "stream"],
    prepare: async (ground) => {
      await ground.openGroup();
      await ground.delay(count, 1);
      return { args: { ...TRANSFER, makes: 1 } };
    },
  },
  {
    name: `ack, ${count}`,
    of: ["reliable/deliveries.ts", "ack"],
    prepare: async (ground) => ({
      args: held(count),
      rows: (await ground.deliver(count)).map((entry) => ({ entry, own: 0 })),
    }),
  },
  {
    name: `retry-later, ${count}`,
    of: ["reliable/deliveries.ts", "retryLater"],
    prepare: async (ground) => ({
      args: held(count),
      rows: (await ground.deliver(count)).map((entry) => ({
        entry,
        own: 0,
        delay: 60_000,
        counted: 1,
        reason: "no",
      })),
    }),
  },
  {
    name: `give-back-entries, ${count}`,
    of: ["reliable/deliveries.ts", "giveBackEntries"],
    prepare: async (ground) => ({
      args: held(count),
      rows: (await ground.deliver(count)).map((entry) => ({
        entry,
        own: 0,
        counted: 0,
        reason: "",
      })),
    }),
  },
];

/** What the hot scripts do with one message, and with a hundred. */
export const MOVES: readonly Move[] = [
  ...movesOf(1),
  {
    name: "offer-keyed, replaces",
    of: ["delayed/offer-keyed.ts", "offerKeyed"],
    prepare: async (ground) => ({
      args: offerArgs,
      rows: [keyedRow(ground, "the key", "replace")],
    }),
  },
  {
    name: "reclaim, 1",
    of: ["reliable/reclaim.ts", "reclaim"],
    prepare: async (ground) => {
      await ground.deliver(1);
      return { args: { ...held(1), idle: 0, maxAttempts: 5, limit: 10 } };
    },
  },
  ...movesOf(100),
];
