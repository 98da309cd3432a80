import { channel } from "node:diagnostics_channel";
import type { Redis } from "ioredis";
import { expect, onTestFinished, test } from "vitest";
import type { ScriptEvent } from "../../../src/events.ts";
import { PartitionNames } from "../../../src/partitions/ring/ring.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { collect } from "../../helpers/collect.ts";
import { newLine, newLineThatMayFail, type TestLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { Gate } from "../../helpers/gate.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
import { newRedis, redisUrl, uniqueName } from "../../helpers/redis.ts";
import { serverTime } from "../../helpers/server-time.ts";

// Two clients of one process treat each other as two processes.

interface Order {
  readonly key: string;
  readonly number: number;
}

/** Notes who handles what, and whether two handlers of one key overlap. */
class Ledger {
  readonly handled: (Order & { readonly by: string; readonly fence: number | undefined })[] = [];
  readonly overlaps: string[] = [];
  readonly #running = new Set<string>();

  async note(by: string, order: Order, fence: number | undefined, duration = 1): Promise<void> {
    if (this.#running.has(order.key)) this.overlaps.push(`${by} ${order.key}`);
    this.#running.add(order.key);
    await new Promise((resolve) => setTimeout(resolve, duration));
    this.#running.delete(order.key);
    this.handled.push({ ...order, by, fence });
  }

  /** The keys whose messages were not handled in numerical order. */
  get disordered(): string[] {
    const last = new Map<string, number>();
    return this.handled.flatMap(({ key, number }) => {
      const before = last.get(key) ?? -1;
      last.set(key, number);
      return number > before ? [] : [key];
    });
  }
}

/** A lease on the only partition of a queue, whose holder has just died. */
async function leaveHolder(redis: Redis, name: string, fields: Record<string, string>) {
  const { holder } = queueKeys(new PartitionNames(name).at(0));
  await redis.hset(holder, { holder: "dead", fence: "7", until: "1", ...fields });
}

test("a new holder ends its predecessor's connection, and no other", async () => {
  const name = uniqueName("exclusive");
  const redis = newRedis();
  const { stream } = queueKeys(new PartitionNames(name).at(0));
  const connectionName = uniqueName("predecessor");
  const paused = newRedis(redisUrl(), { connectionName, retryStrategy: () => null });
  const other = newRedis();
  const swallowed: unknown[] = [];
  await redis.xgroup("CREATE", stream, "default", "0", "MKSTREAM");
  paused.xreadgroup("GROUP", "default", "paused", "BLOCK", 0, "STREAMS", stream, ">").then(
    (found) => swallowed.push(found),
    () => {},
  );
  const otherId = await other.client("ID");
  const stale = ["999999999 gone", `${otherId} another`];
  const list = String(await redis.client("LIST"));
  const id = /id=(\d+) /.exec(list.split("\n").find((one) => one.includes(connectionName)) ?? "");
  await leaveHolder(redis, name, {
    connection: `${id?.[1]} ${connectionName}`,
    stale: stale.join("\n"),
  });
  const line = newLine();
  const queue = line.getReliableQueue<number>(name, { partitions: 1, exclusive: true });
  const fences: (number | undefined)[] = [];
  queue.subscribe((_, { fence }) => void fences.push(fence));
  await eventually(async () => !String(await redis.client("LIST")).includes(connectionName));
  await queue.offer(1, 0);
  await eventually(() => fences.length === 1);
  expect(fences[0]).toBeGreaterThan(7);
  expect(swallowed).toEqual([]);
  expect(await other.client("ID")).toBe(otherId);
});

test("a predecessor's messages in flight come first, and a dead one's attempts count", async () => {
  const name = uniqueName("exclusive");
  const redis = newRedis();
  const { stream } = queueKeys(new PartitionNames(name).at(0));
  const line = newLine();
  const queue = line.getReliableQueue<number>(name, { partitions: 1, exclusive: true });
  await queue.offerMany(Array.from({ length: 6 }, (_, i) => ({ payload: i, delay: 0 })));
  await eventually(async () => (await redis.xlen(stream)) === 6);
  await redis.xreadgroup("GROUP", "default", "dead", "COUNT", 2, "STREAMS", stream, ">");
  await redis.xreadgroup("GROUP", "default", "left", "COUNT", 1, "STREAMS", stream, ">");
  await leaveHolder(redis, name, { consumer: "dead", orphans: "=left", group: "default" });
  const handled: [number, number][] = [];
  const fences = new Set<number | undefined>();
  queue.subscribe((payload, { attempt, fence }) => {
    handled.push([payload, attempt]);
    fences.add(fence);
  });
  await eventually(async () => handled.length >= 6 && (await redis.xlen(stream)) === 0);
  expect(handled).toEqual([
    [0, 2],
    [1, 2],
    [2, 1],
    [3, 1],
    [4, 1],
    [5, 1],
  ]);
  expect(fences.size).toBe(1);
});

test("strict: a failed message is not overtaken by others with its key, even across a hand-over", async () => {
  const name = uniqueName("exclusive");
  const [one, two] = [newLine(), newLine()];
  const options = {
    partitions: 1,
    exclusive: true,
    strict: true,
    retry: [50],
    maxAttempts: 3,
  };
  const handled: string[] = [];
  const waited: number[] = [];
  let failedAt = NaN;
  const redis = newRedis();
  const open = (line: TestLine) => line.getReliableQueue<number>(name, options);
  const subscribe = (line: TestLine) =>
    open(line).subscribe(
      async (payload, delivery) => {
        const now = await serverTime(redis);
        if (delivery.failures.length > 0) waited.push(now - failedAt);
        handled.push(`${payload}:${delivery.attempt}`);
        // Before it says so: the pause counts from then.
        failedAt = now;
        if (payload === 1) throw new Error("never");
        if (payload === 2 && delivery.attempt === 1) await delivery.nack({ delay: 2000 });
      },
      { onError: () => {} },
    );
  await open(one).offerMany(
    Array.from({ length: 4 }, (_, i) => ({ payload: i, delay: 0, partitionKey: "k" })),
  );
  const subscription = subscribe(one);
  await eventually(() => handled.includes("2:1"));
  await subscription.close();
  subscribe(two);
  await eventually(() => handled.includes("3:1"));
  expect(handled).toEqual(["0:1", "1:1", "1:2", "1:3", "2:1", "2:2", "3:1"]);
  for (const [i, pause] of [50, 50, 2000].entries())
    expect(waited[i]).toBeGreaterThanOrEqual(pause);
  const letters = await collect(open(two).deadLetters);
  expect(letters.map(({ failures }) => failures.map(({ reason }) => reason))).toEqual([
    ["never", "never", "never"],
  ]);
});

test("strict: a consumer that is not exclusive waits for the pause of a message, too", async () => {
  const name = uniqueName("exclusive");
  const redis = newRedis();
  const seen: { attempt: number; at: number }[] = [];
  const queue = newLine().getReliableQueue(name, { partitions: 1 });
  const { stream, retries } = queueKeys(new PartitionNames(name).at(0));
  await queue.offer("x", 0);
  await eventually(async () => (await redis.xlen(stream)) === 1);
  // As if an exclusive consumer had kept it, and the group had not reached the new entry.
  const [[, fields] = ["", []]] = await redis.xrangeBuffer(stream, "-", "+");
  await redis.xtrim(stream, "MAXLEN", 0);
  const until = Math.ceil(await serverTime(redis)) + 2000;
  await redis.xadd(stream, "*", ...fields, "n", "1", "g", "default", "u", until);
  queue.subscribe(async (_, { attempt }) => {
    seen.push({ attempt, at: await serverTime(redis) });
  });
  await eventually(async () => (await redis.zcard(retries)) === 1);
  await eventually(async () => seen.length > 0 && (await redis.xlen(stream)) === 0);
  expect(seen.map(({ attempt }) => attempt)).toEqual([2]);
  expect(seen[0]?.at).toBeGreaterThanOrEqual(until);
});

test("strict: a failing key holds up only itself, and keeps its order", async () => {
  const name = uniqueName("exclusive");
  const redis = newRedis();
  const line = newLine();
  const strict = { partitions: 1, exclusive: true, strict: true, maxAttempts: 3 };
  const queue = line.getReliableQueue<string>(name, { ...strict, retry: [1500] });
  const handled: string[] = [];
  queue.subscribe(
    (payload, { attempt }) => {
      handled.push(`${payload}:${attempt}`);
      if (payload === "bad 1" && attempt < 3) throw new Error("not yet");
    },
    { onError: () => {} },
  );
  const offer = (payload: string) =>
    queue.offer(payload, 0, { partitionKey: payload.split(" ")[0] as string });
  await offer("bad 1");
  await eventually(() => handled.length === 1);
  for (const payload of ["good 1", "bad 2", "good 2", "bad 3"]) await offer(payload);
  await queue.offer("without", 0);
  await eventually(() => handled.includes("without:1"));
  // What is aside has not been handed out: the death of the process would be no attempt of it.
  const { stream } = queueKeys(new PartitionNames(name).at(0));
  const deliveries = async () =>
    ((await redis.xpending(stream, "default", "-", "+", 10)) as [...string[], number][]).map(
      (row) => row[3],
    );
  await eventually(async () => expect(await deliveries()).toEqual([0, 0, 0]));
  expect(handled).toEqual(["bad 1:1", "good 1:1", "good 2:1", "without:1"]);
  await eventually(() => handled.length === 8);
  expect(handled.slice(4)).toEqual(["bad 1:2", "bad 1:3", "bad 2:1", "bad 3:1"]);
  await eventually(async () => (await redis.xlen(stream)) === 0);
});

test("strict: who waits behind a failed message keeps its place when processes die", async () => {
  const name = uniqueName("exclusive");
  const redis = newRedis();
  const { holder, stream } = queueKeys(new PartitionNames(name).at(0));
  const strict = {
    partitions: 1,
    exclusive: true,
    strict: true,
    retry: [300],
    maxAttempts: 1000,
  };
  const handled: string[] = [];
  let isFailing = true;
  const keys = ["a", "b", "c"];
  const subscribe = (line: TestLine) =>
    line.getReliableQueue<string>(name, strict).subscribe(
      (payload) => {
        handled.push(payload);
        if (isFailing && /^[a-c]0$/.test(payload)) throw new Error("not yet");
      },
      { onError: () => {} },
    );
  const offering = newLine({ transfer: false }).getReliableQueue<string>(name, { partitions: 1 });
  const first = subscribe(newLine());
  for (let number = 0; number < 30; number++) {
    await offering.offerMany(
      keys.map((key) => ({ payload: `${key}${number}`, delay: 0, partitionKey: key })),
    );
  }
  let last = first;
  for (let round = 1; round <= 3; round++) {
    const seen = handled.length;
    await eventually(async () => {
      expect(handled.length).toBeGreaterThan(seen);
      const [count] = (await redis.xpending(stream, "default")) as [number];
      expect(count).toBeGreaterThan(80);
    });
    await last.close();
    // As if it had died.
    const orphans = await redis.hget(holder, "orphans");
    await redis.hset(holder, "orphans", (orphans ?? "").replaceAll(/^=/gm, ""));
    last = subscribe(newLine());
  }
  isFailing = false;
  await eventually(async () => expect(await redis.xlen(stream)).toBe(0));
  for (const key of keys) {
    const own = handled.flatMap((one) =>
      one.startsWith(key) ? [Number.parseInt(one.slice(1), 10)] : [],
    );
    expect(own).toEqual(own.toSorted((a, b) => a - b));
    expect(new Set(own).size).toBe(30);
  }
});

test("strict: the room beside the queue is bounded; then the partition waits, and goes on", async () => {
  const name = uniqueName("exclusive");
  const redis = newRedis();
  const { stream } = queueKeys(new PartitionNames(name).at(0));
  const queue = newLine().getReliableQueue<string>(name, {
    partitions: 1,
    exclusive: true,
    strict: true,
    retry: [500],
    maxAttempts: 1000,
  });
  const handled: string[] = [];
  let isFailing = true;
  const all = Array.from({ length: 600 }, (_, i) => `k${i}`);
  await queue.offerMany(all.map((payload) => ({ payload, delay: 0, partitionKey: "k" })));
  await queue.offer("other", 0, { partitionKey: "other" });
  queue.subscribe(
    (payload) => {
      if (payload === "k0" && isFailing) throw new Error("not yet");
      handled.push(payload);
    },
    { onError: () => {} },
  );
  const inFlight = async () => ((await redis.xpending(stream, "default")) as [number])[0];
  await eventually(async () => expect(await inFlight()).toBe(500));
  expect(handled).toEqual([]);
  isFailing = false;
  await eventually(() => handled.length === 601);
  expect(handled).toEqual([...all, "other"]);
});

test("strict: a message that arrives while its partition is given up keeps its place", async () => {
  const redis = newRedis();
  const strict = {
    partitions: 1,
    exclusive: true,
    strict: true,
    retry: [50],
    leaseTimeout: 600,
  } as const;
  // What arrives in time is a matter of luck.
  for (let round = 0; round < 3; round++) {
    const name = uniqueName("exclusive");
    const { stream } = queueKeys(new PartitionNames(name).at(0));
    const [one, two] = [newLine({ codec: "string" }), newLine({ codec: "string" })];
    const queue = one.getReliableQueue<string>(name, strict);
    const behind = ["x1", "x2", "x3"];
    await queue.offerMany(behind.map((payload) => ({ payload, delay: 0, partitionKey: "x" })));
    await eventually(async () => (await redis.xlen(stream)) === 3);
    const rows = await redis.xrangeBuffer(stream, "-", "+");
    await redis.xtrim(stream, "MAXLEN", 0);
    const handled: string[] = [];
    const gate = new Gate();
    const subscription = queue.subscribe(
      async (payload, { attempt }) => {
        handled.push(payload);
        if (attempt === 1) throw new Error("once");
        await gate.opened;
      },
      { onError: () => {} },
    );
    await queue.offer("a", 0, { partitionKey: "a" });
    await eventually(() => handled.length === 2);
    // It reads beside the handler now.
    const reads = async () => {
      const clients = String(await redis.client("LIST")).split("\n");
      return clients.filter((line) => line.includes(name) && line.includes("cmd=xreadgroup"));
    };
    await eventually(async () => expect(await reads()).toHaveLength(1));
    const closing = subscription.close();
    for (const [, fields] of rows) void redis.xadd(stream, "*", ...fields);
    // Beats find what nobody holds.
    const from = await serverTime(redis);
    await eventually(async () => expect(await serverTime(redis)).toBeGreaterThan(from + 1000));
    gate.open();
    await closing;
    two.getReliableQueue<string>(name, strict).subscribe((payload) => void handled.push(payload));
    await eventually(() => handled.length === 5);
    expect(handled).toEqual(["a", "a", ...behind]);
  }
});

test("strict: nothing that is aside is handed out while the queue is paused", async () => {
  const name = uniqueName("exclusive");
  const strict = { partitions: 1, exclusive: true, strict: true, retry: [300] };
  const queue = newLine().getReliableQueue<string>(name, strict);
  const handled: number[] = [];
  await queue.offer("bad", 0);
  queue.subscribe(
    async (_, { attempt }) => {
      handled.push(attempt);
      if (attempt > 1) return;
      await queue.pause();
      throw new Error("once");
    },
    { onError: () => {} },
  );
  await eventually(async () => expect(await queue.stats()).toMatchObject({ inFlight: 1 }));
  const redis = newRedis();
  const from = await serverTime(redis);
  await eventually(async () => expect(await serverTime(redis)).toBeGreaterThan(from + 1000));
  expect(handled).toEqual([1]);
  await queue.resume();
  await eventually(() => handled.length === 2);
});

test("strict: a message that is held back where it is read waits there, and its death counts nothing", async () => {
  const name = uniqueName("exclusive");
  const redis = newRedis();
  const { stream, holder } = queueKeys(new PartitionNames(name).at(0));
  const options = { partitions: 1, exclusive: true, strict: true };
  const [one, two] = [newLine(), newLine()];
  const open = (line: TestLine) =>
    line.getReliableQueue<string>(name, { ...options, codec: "string" });
  await open(one).offerMany(
    ["waits", "behind"].map((payload) => ({ payload, delay: 0, partitionKey: "k" })),
  );
  await eventually(async () => (await redis.xlen(stream)) === 2);
  // As if the messages had come from another partition.
  const all = await redis.xrangeBuffer(stream, "-", "+");
  await redis.xtrim(stream, "MAXLEN", 0);
  const until = Math.ceil(await serverTime(redis)) + 3000;
  const more = [["n", "1", "g", "default", "u", String(until)], []];
  for (const [i, [, fields]] of all.entries())
    await redis.xadd(stream, "*", ...fields, ...(more[i] ?? []));
  const handled: [string, number][] = [];
  let at = 0;
  const handle = async (payload: string, { attempt }: { readonly attempt: number }) => {
    at ||= await serverTime(redis);
    handled.push([payload, attempt]);
  };
  const subscription = open(one).subscribe(handle);
  /** Entries in flight, with the number of deliveries that Redis has counted. */
  const inFlight = async () =>
    (
      (await redis.xpending(stream, "default", "-", "+", 10)) as [string, string, number, number][]
    ).map(([, , , count]) => count);
  await eventually(async () => expect(await inFlight()).toEqual([0, 0]));
  // As if it had died: the consumer is no longer one that has left.
  await subscription.close();
  const orphans = await redis.hget(holder, "orphans");
  await redis.hset(holder, "orphans", (orphans ?? "").replace("=", ""));
  open(two).subscribe(handle);
  await eventually(() => handled.length === 2);
  expect(handled).toEqual([
    ["waits", 2],
    ["behind", 1],
  ]);
  expect(at).toBeGreaterThanOrEqual(until);
});

test.each([
  { from: 1, to: 4 },
  { from: 4, to: 1 },
])(
  "strict: a pause is kept while the number changes from $from to $to, and nothing overtakes",
  async ({ from, to }) => {
    const name = uniqueName("exclusive");
    const redis = newRedis();
    const line = newLine();
    const options = { partitions: from, exclusive: true, strict: true, retry: [2500] };
    const queue = line.getReliableQueue<Order>(name, options);
    const handled: string[] = [];
    const waited: number[] = [];
    queue.subscribe(
      async ({ key, number }, { attempt, failures }) => {
        handled.push(`${key}:${number}:${attempt}`);
        if (attempt > 1) waited.push((await serverTime(redis)) - (failures.at(-1)?.at ?? 0));
        if (number === 0 && attempt === 1) throw new Error("once");
      },
      { onError: () => {} },
    );
    const keys = ["k0", "k1", "k2", "k3", "k4", "k5"];
    for (const number of [0, 1]) {
      const messages = keys.map((key) => ({
        payload: { key, number },
        delay: 0,
        partitionKey: key,
      }));
      await queue.offerMany(messages);
    }
    await eventually(() => handled.length >= 1);
    await line.setPartitions(name, to);
    await eventually(() => handled.length === 18, { within: 60_000 });
    for (const key of keys) {
      const own = handled.filter((one) => one.startsWith(key));
      expect(own).toEqual([`${key}:0:1`, `${key}:0:2`, `${key}:1:1`]);
    }
    expect(waited).toHaveLength(6);
    expect(Math.min(...waited)).toBeGreaterThanOrEqual(2500);
  },
  90_000,
);

test("keeps the order per key while processes come and go and the number changes", async () => {
  const name = uniqueName("exclusive");
  const ledger = new Ledger();
  const [one, two] = [newLine(), newLine()];
  const open = (line: TestLine) =>
    line.getReliableQueue<Order>(name, { partitions: 2, exclusive: true });
  const subscribe = (line: TestLine, by: string) =>
    open(line).subscribe((order, { fence }) => ledger.note(by, order, fence));
  const offerSome = async (first: number) => {
    for (let number = first; number < first + 20; number++) {
      const messages = Array.from({ length: 10 }, (_, i) => {
        return { payload: { key: `k${i}`, number }, delay: 0, partitionKey: `k${i}` };
      });
      await open(two).offerMany(messages);
    }
  };
  const first = subscribe(one, "one");
  const offering = offerSome(0);
  await eventually(() => ledger.handled.length > 20);
  subscribe(two, "two");
  await one.setPartitions(name, 5);
  await eventually(() => ledger.handled.some(({ by }) => by === "two"));
  await first.close();
  await offering;
  await two.setPartitions(name, 2);
  await offerSome(20);
  await eventually(() => ledger.handled.length === 400);
  expect(ledger.overlaps).toEqual([]);
  expect(ledger.disordered).toEqual([]);
}, 90_000);

test("only subscribe takes, once per client, one message at a time", async () => {
  const name = uniqueName("exclusive");
  const line = newLine();
  const options = { partitions: 2, exclusive: true };
  const reliable = line.getReliableQueue(name, options);
  await expect(reliable.take()).rejects.toThrow("only subscribe");
  await expect(reliable[Symbol.asyncIterator]().next()).rejects.toThrow("only subscribe");
  expect(() => reliable.subscribeBatch(() => {}, { limit: 2 })).toThrow("only subscribe");
  expect(() => reliable.route({})).toThrow("only subscribe");
  expect(() => reliable.subscribe(() => {}, { concurrency: 1 })).toThrow("concurrency");
  reliable.subscribe(() => {});
  expect(() => reliable.subscribe(() => {})).toThrow("once");
  expect(() => line.getReliableQueue("q", { partitions: 1, strict: true } as never)).toThrow(
    "strict",
  );
  expect(() => line.getReliableQueue("q", { exclusive: 1 as never })).toThrow("exclusive");
  expect(() => line.getBlockingQueue("q", { exclusive: true } as never)).toThrow(
    "use getReliableQueue",
  );
});

test("a consumer without a number waits for the partitions that another process creates", async () => {
  const name = uniqueName("exclusive");
  const [one, two] = [newLine(), newLine()];
  const handled: unknown[] = [];
  one
    .getReliableQueue<number>(name, { exclusive: true })
    .subscribe((payload) => void handled.push(payload));
  await two.getReliableQueue<number>(name, { partitions: 2 }).offer(5, 0);
  await eventually(() => handled.length === 1);
});

test("if Redis refuses what a holder has to inherit, the cause is told, and the holder pauses", async () => {
  const name = uniqueName("exclusive");
  const server = await startOwnServer();
  const redis = newRedis(server.url);
  await redis.call("ACL", "SETUSER", "limited", "on", ">secret", "~*", "&*", "+@all", "-xclaim");
  const url = new URL(server.url);
  [url.username, url.password] = ["limited", "secret"];
  const line = newLineThatMayFail({ redis: url.href });
  const causes: string[] = [];
  line.on("error", ({ message }) => void causes.push(message));
  const holds: number[] = [];
  const note = (run: unknown) => {
    if ((run as ScriptEvent).script === "hold-guarded") holds.push(performance.now());
  };
  const scripts = channel("delayline:script");
  scripts.subscribe(note);
  onTestFinished(() => {
    scripts.unsubscribe(note);
  });
  const handled: number[] = [];
  line
    .getReliableQueue<number>(name, { partitions: 1, exclusive: true })
    .subscribe((payload) => void handled.push(payload));
  await eventually(() => holds.length >= 4);
  expect((holds[3] as number) - (holds[0] as number)).toBeGreaterThan(150);
  expect(causes).toEqual([expect.stringContaining("cannot take from partition")]);
  // Once the cause is gone the queue is consumed.
  await redis.call("ACL", "SETUSER", "limited", "+xclaim");
  await newLine({ redis: server.url })
    .getReliableQueue<number>(name, { partitions: 1 })
    .offer(1, 0);
  await eventually(() => handled.length === 1);
});
