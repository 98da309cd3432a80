import { randomBytes } from "node:crypto";
import { Redis, type Result } from "ioredis";
import {
  deadlineOf,
  QUEUE,
  type OnMessage,
  type Peer,
  type PeerMessage,
  type PeerProducer,
  type PeerWorker,
} from "./peer.ts";

/*
 * The work of Redisson's RDelayedQueue and RBlockingQueue (Java, 3.21.1 and later) in Redis, rewritten for Node.js: the
 * same structures, and the same commands at the same moments. It says nothing about Java. Timers are exact to the
 * millisecond, consumers send their next BLPOP before the last reply, and calls of one turn are pipelined. All of this
 * favours Redisson.
 */
export const redisson: Peer = {
  title: "Redisson's algorithm",
  settings:
    "rewritten on ioredis; every worker transfers; bulk is pipelined, as there is no bulk call",
  ...withScripts("redisson"),
};

/** The least that a delayed queue on ioredis can be: the same without an insertion order. It cannot cancel. */
export const bare: Peer = {
  title: "bare",
  settings: "the same without the insertion order: a ZSET, a LIST, a channel",
  contests: ["offers", "lateness"],
  ...withScripts("bare"),
};

function withScripts(kind: Kind): Omit<Peer, "title" | "settings"> {
  return {
    delayedKey: `redisson_delay_queue_timeout:{${QUEUE}}`,

    async openProducer(url) {
      return new Producer(connect(url, kind));
    },

    async fill(url, payloads) {
      const redis = connect(url, kind);
      await redis.rpush(QUEUE, ...payloads);
      await redis.quit();
    },

    async openWorker(url, concurrency, onMessage) {
      const worker = new Worker(url, kind);
      await worker.start(concurrency, onMessage);
      return worker;
    },
  };
}

const ORDER = `redisson_delay_queue:{${QUEUE}}`;
const CHANNEL = `redisson_delay_queue_channel:{${QUEUE}}`;
const KEYS = [`redisson_delay_queue_timeout:{${QUEUE}}`, ORDER, QUEUE] as const;

type Kind = "redisson" | "bare";

/** Members are `id length | id | payload length | payload`, in both the ZSET and the LIST. */
const offer = /* lua */ `
local member = struct.pack("Bc0Lc0", #ARGV[2], ARGV[2], #ARGV[3], ARGV[3])
redis.call("ZADD", KEYS[1], ARGV[1], member)
redis.call("RPUSH", KEYS[2], member)
if redis.call("ZRANGE", KEYS[1], 0, 0)[1] == member then redis.call("PUBLISH", ARGV[4], ARGV[1]) end
return 1
`;

/** Moves up to 100 due messages. Returns the first remaining deadline. */
const transfer = /* lua */ `
local due = redis.call("ZRANGEBYSCORE", KEYS[1], 0, ARGV[1], "LIMIT", 0, ARGV[2])
for _, member in ipairs(due) do
  local _, payload = struct.unpack("Bc0Lc0", member)
  redis.call("RPUSH", KEYS[3], payload)
  redis.call("LREM", KEYS[2], 1, member)
end
if #due > 0 then redis.call("ZREM", KEYS[1], unpack(due)) end
return redis.call("ZRANGE", KEYS[1], 0, 0, "WITHSCORES")[2]
`;

const bareOffer = withoutOrder(offer);
const bareTransfer = withoutOrder(transfer);

function withoutOrder(lua: string): string {
  return lua.replace(/^.*KEYS\[2\].*\n/gm, "");
}

/** By the exact member, which is the best possible case: Redisson itself searches. */
const remove = /* lua */ `
redis.call("LREM", KEYS[2], 1, ARGV[1])
return redis.call("ZREM", KEYS[1], ARGV[1])
`;

declare module "ioredis" {
  interface RedisCommander<Context> {
    peerOffer(...words: readonly (string | number | Buffer)[]): Result<number, Context>;
    peerTransfer(...words: readonly (string | number | Buffer)[]): Result<string | null, Context>;
    peerRemove(...words: readonly (string | number | Buffer)[]): Result<number, Context>;
  }
}

function connect(url: string, kind: Kind): Redis {
  const redis = new Redis(url, { maxRetriesPerRequest: null });
  redis.defineCommand("peerOffer", { numberOfKeys: 3, lua: kind === "bare" ? bareOffer : offer });
  redis.defineCommand("peerTransfer", {
    numberOfKeys: 3,
    lua: kind === "bare" ? bareTransfer : transfer,
  });
  redis.defineCommand("peerRemove", { numberOfKeys: 3, lua: remove });
  return redis;
}

class Producer implements PeerProducer {
  readonly #redis: Redis;
  readonly #members = new Map<string, Buffer>();

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  async offer({ payload, due, key }: PeerMessage): Promise<number> {
    const deadline = deadlineOf(due);
    const id = randomBytes(8);
    if (key !== undefined) this.#members.set(key, pack(id, payload));
    await this.#redis.peerOffer(...KEYS, deadline, id, payload, CHANNEL);
    return deadline;
  }

  offerMany(messages: readonly PeerMessage[]): Promise<number[]> {
    return Promise.all(messages.map((message) => this.offer(message)));
  }

  async cancel(key: string): Promise<unknown> {
    return await this.#redis.peerRemove(...KEYS, this.#members.get(key) ?? "");
  }

  close(): Promise<unknown> {
    return this.#redis.quit();
  }
}

function pack(id: Buffer, payload: string): Buffer {
  const bytes = Buffer.from(payload);
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(bytes.length));
  return Buffer.concat([Buffer.of(id.length), id, length, bytes]);
}

/** Runs the transfer script at every deadline that it hears of, and takes ready messages. */
class Worker implements PeerWorker {
  readonly #commands: Redis;
  readonly #subscriber: Redis;
  readonly #blocking: Redis;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(url: string, kind: Kind) {
    this.#commands = connect(url, kind);
    this.#subscriber = connect(url, kind);
    this.#blocking = connect(url, kind);
  }

  async start(takers: number, onMessage: OnMessage): Promise<void> {
    this.#subscriber.on("message", (_, deadline) => this.#schedule(Number(deadline)));
    await this.#subscriber.subscribe(CHANNEL);
    await this.#transfer();
    for (let i = 0; i < takers; i++) void this.#takeOn(onMessage);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    for (const redis of [this.#blocking, this.#subscriber, this.#commands]) redis.disconnect();
  }

  #schedule(deadline: number): void {
    clearTimeout(this.#timer);
    if (this.#isClosed) return;
    const left = deadline - Date.now();
    if (left > 0) this.#timer = setTimeout(() => void this.#transfer(), left);
    else void this.#transfer();
  }

  async #transfer(): Promise<void> {
    const next = await this.#commands.peerTransfer(...KEYS, Date.now(), 100).catch(this.#afterEnd);
    if (typeof next === "string") this.#schedule(Number(next));
  }

  async #takeOn(onMessage: OnMessage): Promise<void> {
    while (!this.#isClosed) {
      const taken = await this.#blocking.blpop(QUEUE, 0).catch(this.#afterEnd);
      if (taken) onMessage(taken[1]);
    }
  }

  /** Closing a connection ends the calls that wait on it. */
  readonly #afterEnd = (error: unknown): undefined => {
    if (!this.#isClosed) throw error;
  };
}
