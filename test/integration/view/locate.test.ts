import { expect, onTestFinished, test } from "vitest";
import type { Delivery, ReliableQueue } from "../../../src/index.ts";
import { consumers, locate } from "../../../src/tools/view/locate.ts";
import { Inspector } from "../../../src/tools/view/inspector.ts";
import { parseRecord, recordOf } from "../../../src/tools/view/record.ts";
import type { Sighting } from "../../../src/tools/view/sighting.ts";
import { describe } from "../../../src/tools/cli/session/message-view.ts";
import { eventually } from "../../helpers/eventually.ts";
import { Gate } from "../../helpers/gate.ts";
import { newLine } from "../../helpers/delayline.ts";
import { redisUrl, uniqueName } from "../../helpers/redis.ts";

const HOUR = 3_600_000;

function newInspector(): Inspector {
  const inspector = new Inspector({ redis: redisUrl() });
  onTestFinished(() => inspector.close());
  return inspector;
}

/** Opens the queue anew and locates a message in it. */
async function look(name: string, idOrKey: string, inspector = newInspector()) {
  return await locate(await inspector.open(name), idOrKey);
}

test("a delayed message is found by its id and by its key", async () => {
  const name = uniqueName();
  const queue = newLine().getDelayedQueue<string>(name, { codec: "string" });
  const before = Date.now();
  const { id, deadline } = await queue.offer("x", HOUR, { key: "order:42" });
  const inspector = newInspector();
  for (const idOrKey of [id, "order:42"]) {
    const { sightings } = await look(name, idOrKey, inspector);
    expect(sightings).toMatchObject([
      { state: "delayed", queue: name, id, key: "order:42", deadline, attempts: 0, size: 1 },
    ]);
    expect(sightings[0]?.payload.toString()).toBe("x");
    expect(Math.abs((sightings[0]?.offeredAt ?? 0) - before)).toBeLessThan(60_000);
  }
  expect(await look(name, "order:43", inspector)).toEqual({ sightings: [], mayBeReady: false });
});

test("a ready message of a plain queue is not found, but reported as possibly ready", async () => {
  const name = uniqueName();
  const queue = newLine().getDelayedQueue(name);
  const { id } = await queue.offer("x", 0, { key: "order:42" });
  await eventually(async () => (await queue.stats()).ready === 1);
  expect(await look(name, id)).toEqual({ sightings: [], mayBeReady: true });
});

test.each([
  ["an ordinary", {}],
  ["a partitioned", { partitions: 3 }],
])("%s reliable queue: messages in every state are found by id and by key", async (_, options) => {
  const name = uniqueName();
  const [line, inspector] = [newLine(), newInspector()];
  const queue: ReliableQueue = line.getReliableQueue(name, {
    ...options,
    retry: () => HOUR,
    maxAttempts: 3,
  });
  const offer = async (key: string) => await queue.offer("x", 0, { key, headers: { trace: key } });
  const seen = async (idOrKey: string) => {
    const { sightings } = await look(name, idOrKey, inspector);
    return sightings.map(({ state, id, key, headers, attempts }) => {
      return { state, id, key, headers, attempts };
    });
  };
  const dead = await offer("dead");
  await (await queue.take()).reject("no such customer");
  const late = await offer("late");
  await (await queue.take()).nack();
  const held = await offer("held");
  const delivery = await queue.take();
  const ready = await offer("ready");
  await eventually(async () => (await queue.stats()).ready === 1);
  const rows = [
    [dead.id, "dead", 1, "dead"],
    [late.id, "late", 1, "retrying"],
    [held.id, "held", 1, "in flight"],
    [ready.id, "ready", 0, "ready"],
  ] as const;
  for (const [id, key, attempts, state] of rows) {
    const expected = [{ state, id, key, headers: { trace: key }, attempts }];
    expect(await seen(id)).toEqual(expected);
    expect(await seen(key)).toEqual(expected);
  }
  const [grave] = (await look(name, "dead", inspector)).sightings;
  expect(grave).toMatchObject({ group: "default", reason: "no such customer" });
  const [hand] = (await look(name, "held", inspector)).sightings;
  const [owner] = (await consumers(await inspector.open(name))).filter((one) => one.inFlight > 0);
  // In partitions a process is one consumer, by its own name.
  const owners = [hand?.consumer, `${hand?.host}/${hand?.pid}`];
  expect(owner).toMatchObject({ group: "default", inFlight: 1 });
  expect(owners).toContain(owner?.name);
  expect(Math.abs((hand?.takenAt ?? 0) - Date.now())).toBeLessThan(60_000);
  expect(hand).toMatchObject({ host: expect.any(String), pid: process.pid });
  const [waiting] = (await look(name, "late", inspector)).sightings;
  expect(waiting?.deadline).toBeGreaterThan(Date.now() + HOUR / 2);
  await delivery.ack();
  expect(await seen("held")).toEqual([]);
});

test.each([
  ["a handler", {}, []],
  ["an exclusive handler", { partitions: 1, exclusive: true }, [true]],
])("%s that runs long: since when, in which process", async (_, options, holders) => {
  const name = uniqueName();
  const line = newLine();
  const queue = line.getReliableQueue(name, { ...options, leaseTimeout: 100 });
  const [entered, done] = [new Gate(), new Gate()];
  onTestFinished(() => done.open());
  queue.subscribe(async (__, delivery) => {
    expect(await delivery.extend(10_000)).toBe(true);
    entered.open();
    await done.opened;
  });
  const { id } = await queue.offer("x", 0);
  await entered.opened;
  // Twelve beats.
  await eventually(async () => {
    const { oldestInFlightAge = 0 } = await queue.stats();
    expect(oldestInFlightAge).toBeGreaterThan(400);
  });
  const { sightings } = await look(name, id);
  expect(sightings).toMatchObject([{ state: "in flight", attempts: 1, pid: process.pid }]);
  const { serverTime } = await queue.stats();
  expect(serverTime - (sightings[0]?.takenAt ?? NaN)).toBeGreaterThan(400);
  const partitions = await line.partitions(name);
  expect(partitions.map(({ holder }) => holder?.includes(`/${process.pid}/`))).toEqual(holders);
  done.open();
  await eventually(async () => {
    expect((await queue.stats()).oldestInFlightAge).toBeUndefined();
  });
});

test("a message is found in each group that has not settled it", async () => {
  const name = uniqueName();
  const line = newLine();
  const [one, two] = ["one", "two"].map((group) => line.getReliableQueue(name, { group }));
  await two?.poll();
  const { id } = await (one as ReliableQueue).offer("x", 0);
  await (await one?.take())?.ack();
  const states = async () =>
    (await look(name, id)).sightings.map(({ group, state }) => ({ group, state }));
  expect(await states()).toEqual([{ group: "two", state: "ready" }]);
  const delivery = await two?.take();
  expect(await states()).toEqual([{ group: "two", state: "in flight" }]);
  await delivery?.ack();
});

test("messages beyond the first page are found", async () => {
  const name = uniqueName();
  const queue = newLine().getReliableQueue(name, { retry: () => HOUR, maxAttempts: 3 });
  const handled = async (
    word: string,
    count: number,
    settle: (one: Delivery) => Promise<unknown>,
  ) => {
    const rows = Array.from({ length: count }, (_, i) => ({
      payload: "x",
      delay: 0,
      key: `${word}:${i}`,
    }));
    await queue.offerMany(rows);
    for (let left = count; left > 0;) {
      const some = await queue.takeMany({ limit: left });
      await Promise.all(some.map(settle));
      left -= some.length;
    }
  };
  await handled("retrying", 230, (one) => one.nack());
  await handled("dead", 230, (one) => one.reject("why"));
  await handled("in flight", 230, () => Promise.resolve());
  const inspector = newInspector();
  for (const state of ["retrying", "dead", "in flight"]) {
    const { sightings } = await look(name, `${state}:229`, inspector);
    expect(sightings).toMatchObject([{ state, key: `${state}:229`, attempts: 1 }]);
  }
});

test("a message in strict order waits in flight, and an export keeps its pause", async () => {
  const name = uniqueName();
  const queue = newLine().getReliableQueue(name, {
    partitions: 1,
    exclusive: true,
    strict: true,
    retry: () => HOUR,
  });
  let hasFailed = false;
  queue.subscribe(() => Promise.reject(new Error("bad")), {
    onError: () => void (hasFailed = true),
  });
  await queue.offer("x", 0, { key: "k" });
  await eventually(() => hasFailed);
  const { sightings } = await look(name, "k");
  const [seen] = sightings as [Sighting];
  expect(seen).toMatchObject({ state: "in flight", attempts: 1, readyAt: undefined });
  const { heldBackUntil = 0, failures } = seen;
  const pause = heldBackUntil - (failures[0]?.at ?? 0);
  expect(pause).toBeGreaterThanOrEqual(HOUR);
  expect(pause).toBeLessThan(HOUR + 60_000);
  expect(describe(seen, heldBackUntil - HOUR, false).join()).toContain("held back until");
  const { arrival } = parseRecord(JSON.stringify(recordOf(seen)));
  expect(arrival).toMatchObject({ kind: "retry", score: String(heldBackUntil) });
});
