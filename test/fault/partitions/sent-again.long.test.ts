import type { Redis } from "ioredis";
import { expect, test } from "vitest";
import type { OfferResult } from "../../../src/index.ts";
import { guarded } from "../../../src/lua/guarded.ts";
import { pullOutPage } from "../../../src/lua/partitions/pull-out.ts";
import { partitionName, tableOf } from "../../../src/partitions/ring/ring.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { bucketOf, unpackMember } from "../../../src/queue/message/message.ts";
import { newLine, newLineThatMayFail, type TestLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { missing, repeated } from "../../helpers/ledger.ts";
import { upTo } from "../../helpers/numbers.ts";
import { newRedis, redisUrl, uniqueName } from "../../helpers/redis.ts";
import { Roles } from "../../helpers/roles.ts";
import { startProxy } from "../../helpers/tcp-proxy.ts";

/*
 * Redis has stored an offer, its reply is lost, and the number of partitions changes before the offer is sent again.
 * The message is in the partition that it belonged to, in that one's journal, or where it belongs now. It is stored
 * once, and the offer returns what the first copy got.
 */

const COUNT = 40;

/** The longest time that a machine may take for a change and a reconnect, in milliseconds. */
const DELAY = 4_000;

/** How far the change is when the offers are sent again. */
type Progress =
  | "has begun"
  | "has taken the messages out"
  | "has ended"
  | "was followed by another one that has begun"
  | "was followed by another one that has ended";

const PROGRESSES: readonly Progress[] = [
  "has begun",
  "has taken the messages out",
  "has ended",
  "was followed by another one that has begun",
  "was followed by another one that has ended",
];

/** The messages in a partition that do not belong there if there are `count` partitions. */
async function misplaced(
  redis: Redis,
  name: string,
  partition: number,
  count: number,
): Promise<number> {
  const { timeouts } = queueKeys(partitionName(name, partition));
  const members = await redis.zrangeBuffer(timeouts, "0", "-1");
  const belongs = (member: Buffer) =>
    tableOf(count)[bucketOf(unpackMember(member)!.id)!] === partition;
  return members.filter((member) => !belongs(member)).length;
}

/** Begins to change the number of partitions, and stalls before messages leave their partition, or right after that. */
async function beginChange(name: string, from: number, to: number, stalls: "before" | "after") {
  const proxy = await startProxy(redisUrl());
  const { sha, lua } = guarded(pullOutPage);
  const redis = newRedis();
  await redis.script("LOAD", lua);
  let isStalled = false;
  proxy.onRequest = (chunk, connection) => {
    if (!chunk.includes(sha)) return "forward";
    isStalled = true;
    connection.swallow("reply");
    return stalls === "before" ? "drop" : "forward";
  };
  const line = newLineThatMayFail({ redis: proxy.url, transfer: false, unreachableTimeout: 100 });
  const controller = new AbortController();
  const changing = line.setPartitions(name, to, { signal: controller.signal });
  const ended = changing.catch(() => {});
  await eventually(async () => {
    expect(isStalled).toBe(true);
    const counts = await Promise.all(
      upTo(from).map((partition) => misplaced(redis, name, partition, to)),
    );
    const sum = counts.reduce((total, count) => total + count, 0);
    if (stalls === "after") expect(sum).toBe(0);
    else expect(sum).toBeGreaterThan(0);
  });
  controller.abort();
  proxy.refuse();
  proxy.cut();
  await ended;
}

async function change(
  name: string,
  line: TestLine,
  progress: Progress,
  numbers: readonly number[],
) {
  const [from = 0, to = 0, last = 0] = numbers;
  switch (progress) {
    case "has begun":
      return await beginChange(name, from, to, "before");
    case "has taken the messages out":
      return await beginChange(name, from, to, "after");
    case "has ended":
      return await line.setPartitions(name, to);
    case "was followed by another one that has begun":
      await line.setPartitions(name, to);
      return await beginChange(name, to, last, "before");
    case "was followed by another one that has ended":
      await line.setPartitions(name, to);
      return await line.setPartitions(name, last);
  }
}

/** A change takes messages out of at most four partitions at once: of all old ones, or only of those it removes. */
interface Variant {
  readonly kind: "plain" | "reliable";
  readonly offered: "one by one" | "together";
  readonly keys: "none" | "keys" | "partition keys" | "both";
  /** What becomes of an older message with the same key, if there is one. */
  readonly onDuplicate?: "replace" | "update";
  readonly numbers: readonly number[];
}

const VARIANTS: readonly Variant[] = [
  { kind: "plain", offered: "one by one", keys: "none", numbers: [3, 5, 8] },
  { kind: "plain", offered: "together", keys: "partition keys", numbers: [7, 3, 5] },
  { kind: "plain", offered: "one by one", keys: "keys", numbers: [3, 5, 2] },
  { kind: "plain", offered: "together", keys: "both", numbers: [7, 3, 2] },
  { kind: "reliable", offered: "together", keys: "none", numbers: [2, 6, 3] },
  { kind: "reliable", offered: "one by one", keys: "keys", numbers: [6, 2, 7] },
  { kind: "plain", offered: "together", keys: "both", onDuplicate: "replace", numbers: [3, 7, 4] },
  {
    kind: "reliable",
    offered: "one by one",
    keys: "keys",
    onDuplicate: "update",
    numbers: [4, 2, 6],
  },
];

/** Offers messages, loses the replies, changes the number, and lets the offers be sent again and delivered. */
async function play(variant: Variant, progress: Progress) {
  const { kind, offered, keys, onDuplicate, numbers } = variant;
  const name = uniqueName();
  const proxy = await startProxy(redisUrl());
  const roles = new Roles(proxy);
  const settings = { codec: "string", partitions: numbers[0] as number } as const;
  const open = (client: TestLine) =>
    kind === "plain"
      ? client.getDelayedQueue<string>(name, settings)
      : client.getReliableQueue<string>(name, settings);
  const queue = open(
    newLineThatMayFail({ redis: proxy.url, transfer: false, callTimeout: 15_000 }),
  );
  const line = newLine({ transfer: false });
  const other = open(line);
  const messages = upTo(COUNT).map((i) => ({
    payload: `payload ${i}`,
    delay: DELAY,
    ...(["keys", "both"].includes(keys) && { key: `key ${i}` }),
    ...(onDuplicate && { onDuplicate }),
    ...(["partition keys", "both"].includes(keys) && { partitionKey: `part ${i}` }),
  }));
  // From now on Redis knows the script and the consumer groups, and the client knows the partitions.
  await queue.offerMany(
    upTo(64).map((i) => ({ ...messages[0], payload: "", delay: DELAY, partitionKey: `${i}` })),
  );
  await queue.clear();
  if (onDuplicate !== undefined) {
    await queue.offerMany(messages.map((message) => ({ ...message, payload: "older" })));
  }

  // Redis stores the offers. Their replies are lost.
  let isLosing = true;
  proxy.onReply = (_, connection) =>
    isLosing && roles.nameOf(connection)?.startsWith("delayline:commands") ? "drop" : "forward";
  const offers: Promise<readonly OfferResult[]>[] = [];
  if (offered === "together") {
    offers.push(queue.offerMany(messages));
  } else {
    for (const { payload, delay, ...options } of messages) {
      offers.push(queue.offer(payload, delay, options).then((result) => [result]));
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
  const offering = Promise.all(offers);
  offering.catch(() => {});
  const stored = new Map<string, string>();
  await eventually(async () => {
    for await (const { payload, id } of other.soonest()) stored.set(payload, id);
    for (const { payload } of messages) expect([...stored.keys()]).toContain(payload);
  });
  isLosing = false;
  proxy.refuse();
  proxy.cut();

  await change(name, line, progress, numbers);
  await proxy.accept();
  const results = (await offering).flat();

  const worker = newLine();
  const received: string[] = [];
  if (kind === "plain") {
    const ready = worker.getBlockingQueue<string>(name, settings);
    ready.subscribe((payload) => void received.push(payload));
  } else {
    const ready = worker.getReliableQueue<string>(name, settings);
    ready.subscribe((payload) => void received.push(payload));
  }
  await eventually(() => received.length >= COUNT);
  // Any process finishes the change. No second copy turns up on the way.
  await line.setPartitions(name, numbers.at(-1) as number);
  await eventually(async () => {
    const { delayed, ready, inFlight } = await other.stats();
    expect(delayed + ready + inFlight).toBe(0);
  });
  const expected = { replace: "replaced", update: "updated", add: "added" }[onDuplicate ?? "add"];
  return {
    results: results.map(({ id, outcome }) => `${outcome} ${id}`),
    expected: messages.map(({ payload }) => `${expected} ${stored.get(payload)}`),
    twice: repeated(received),
    lost: missing(
      messages.map(({ payload }) => payload),
      received,
    ),
  };
}

test.each(VARIANTS)(
  "$kind, $offered, $keys, $onDuplicate, $numbers: stored once",
  async (variant) => {
    const played = await Promise.all(PROGRESSES.map((progress) => play(variant, progress)));
    for (const [i, { results, expected, ...delivered }] of played.entries()) {
      const when = `the change ${PROGRESSES[i]}`;
      expect.soft(delivered, when).toEqual({ twice: [], lost: [] });
      expect.soft(results, when).toEqual(expected);
    }
  },
);
