import { expect, test } from "vitest";
import type { Delivery, ReliableQueue } from "../../../src/index.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { newDashboard, type TestDashboard } from "../../helpers/dashboard.ts";
import { newLine, newLineThatMayFail } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";

const HOUR = 3_600_000;
const upTo = (count: number) => Array.from({ length: count }, (_, i) => i);

/** All pages of a list, one after another. */
async function pagesOf({ get }: TestDashboard, path: string): Promise<any[][]> {
  const pages: any[][] = [];
  for (let after: string | null = ""; after !== null;) {
    const { status, body } = await get(`${path}${after === "" ? "" : `&after=${after}`}`);
    expect(status).toBe(200);
    pages.push(body.messages);
    after = body.next;
  }
  return pages;
}

test("the session tells the page what is allowed", async () => {
  const open = await newDashboard({ payloads: true }).get("api/session");
  expect(open.body).toEqual({ readOnly: false, payloads: true, version: expect.any(String) });
  const { body } = await newDashboard({ readOnly: true }).get("api/session");
  expect(body).toMatchObject({ readOnly: true, payloads: false });
});

test("lists plain, reliable and partitioned queues by name", async () => {
  const { url } = await startOwnServer();
  const line = newLine({ redis: url, transfer: false });
  const { get } = newDashboard({ redis: url });
  expect((await get("api/queues")).body).toEqual({ at: expect.any(Number), queues: [] });
  const now = Math.floor(await line.serverTime());
  await line.getDelayedQueue("b orders").offerAt("x", now - 5000);
  await line.getReliableQueue("c mail").offer("x", HOUR);
  await line.getDelayedQueue("a parts", { partitions: 2 }).pause();
  // The first dashboard reuses its numbers for two seconds. Another one reads them itself.
  const { body } = await newDashboard({ redis: url }).get("api/queues");
  expect(Math.abs(body.at - now)).toBeLessThan(60_000);
  expect(body.queues).toMatchObject([
    { name: "a parts", kind: "plain", partitions: 2, isPaused: true, delayed: 0, overdueBy: 0 },
    { name: "b orders", kind: "plain", partitions: 0, delayed: 1, overdue: 1, consumers: null },
    { name: "c mail", kind: "reliable", overdue: 0, consumers: 0, listeners: 0, readied: 0 },
  ]);
  expect(body.queues[1].overdueBy).toBeGreaterThanOrEqual(5000);
  expect(body.queues[1].overdueBy).toBeLessThan(60_000);

  const parts = (await get("api/queues/a%20parts")).body;
  expect(parts.perPartition).toMatchObject([
    { partition: 0, delayed: 0, node: expect.stringContaining("127.0.0.1:"), holder: null },
    { partition: 1, name: expect.stringContaining("a parts/1/") },
  ]);
  expect((await get("api/queues/b%20orders")).body).toMatchObject({ delayed: 1, perPartition: [] });
  // The queue was read twice within ten seconds, which makes one point.
  expect((await get("api/queues/a%20parts/history")).body.points).toMatchObject([
    { at: expect.any(Number), delayed: 0, readied: null, oldestReadyAge: null },
  ]);
});

test.each([
  ["an ordinary queue", {}],
  ["a queue in partitions", { partitions: 3 }],
])("%s: messages by deadline or prefix, in stable pages", async (_, options) => {
  const name = uniqueName("dashboard");
  const queue = newLine({ transfer: false }).getDelayedQueue<string>(name, options);
  const offered = await queue.offerMany(
    upTo(25).map((i) => ({
      payload: "x",
      delay: HOUR + i * 1000,
      key: `${i % 2 === 0 ? "even" : "odd"}:${i}`,
    })),
  );
  const board = newDashboard();
  const path = `api/queues/${name}/messages`;
  const delayed = `${path}?state=delayed`;
  const pages = await pagesOf(board, `${delayed}&limit=10`);
  expect(pages.map((page) => page.length)).toEqual([10, 10, 5]);
  expect(pages.flat()).toMatchObject(
    offered.map(({ id, deadline }, i) => ({
      id,
      deadline,
      key: `${i % 2 === 0 ? "even" : "odd"}:${i}`,
      state: "delayed",
      group: null,
    })),
  );

  const first = (await board.get(`${delayed}&limit=10`)).body;
  const second = (await board.get(`${delayed}&limit=10&after=${first.next}`)).body;
  await queue.cancel(offered[12]?.id ?? "");
  // A repeated request for a page returns the same.
  expect((await board.get(`${delayed}&limit=10&after=${first.next}`)).body).toEqual(second);

  const even = await pagesOf(board, `${path}?prefix=even:&limit=6`);
  const keys = even.flat().map(({ key }) => key as string);
  expect(even.every((page) => page.length <= 6)).toBe(true);
  expect(keys.toSorted()).toEqual(
    upTo(13)
      .flatMap((i) => (i === 6 ? [] : [`even:${i * 2}`]))
      .toSorted(),
  );
  // A cursor is valid only for its own list, in its own process.
  expect((await board.get(`${path}?prefix=odd:&after=${first.next}`)).status).toBe(410);
  expect((await newDashboard().get(`${delayed}&after=${first.next}`)).status).toBe(410);
});

test("forecasts begin at round times", async () => {
  const name = uniqueName("dashboard");
  const line = newLine({ transfer: false });
  const queue = line.getDelayedQueue(name);
  const { get } = newDashboard();
  const { deadline } = await queue.offer("x", 3 * HOUR);
  for (const [span, step, count] of [
    ["hour", 60_000, 60],
    ["day", 900_000, 96],
    ["month", 86_400_000, 30],
  ] as const) {
    const { body } = await get(`api/queues/${name}/forecast?span=${span}`);
    expect(body).toMatchObject({ step, counts: { length: count } });
    expect(body.from % step).toBe(0);
    const at = body.counts.indexOf(1);
    if (span === "hour") expect(at).toBe(-1);
    else expect(at).toBe(Math.floor((deadline - body.from) / step));
  }
  const { body } = await get(`api/queues/${name}/forecast?from=${deadline}`);
  expect(body).toMatchObject({ from: deadline, counts: expect.arrayContaining([1]) });
  expect(body.counts[0]).toBe(1);
});

test("a delayed message is found, rescheduled, promoted and cancelled, and its payload is sent only if allowed", async () => {
  const name = uniqueName("dashboard");
  const queue = newLine({ transfer: false, codec: "json" }).getDelayedQueue(name);
  const { id, deadline } = await queue.offer({ a: "\u202e<b>" }, HOUR, { key: "order:42" });
  const { get, post } = newDashboard({ payloads: true });
  const path = `api/queues/${name}/message`;
  const { body } = await get(`${path}?key=order:42`);
  expect(body).toMatchObject({
    state: "delayed",
    id,
    key: "order:42",
    deadline,
    headers: {},
    attempts: 0,
    consumer: null,
    takenAt: null,
    reason: null,
    group: null,
    diedAt: null,
    size: 14,
    others: [],
    mayBeReady: false,
  });
  expect(body).not.toHaveProperty("payload");
  const shown = (await get(`${path}?id=${id}&payload=1`)).body;
  expect(shown.payload).toEqual({ format: "json", text: '{"a":"\\u{202e}<b>"}', isCut: false });
  expect((await newDashboard().get(`${path}?id=${id}&payload=1`)).status).toBe(403);

  const moved = (await post(`${path}/reschedule`, { id, delay: 2 * HOUR })).body;
  expect(moved.deadline).toBeGreaterThan(deadline);
  expect((await post(`${path}/reschedule`, { id, delay: 1 })).body).toEqual({ done: false });
  const due = (await post(`${path}/promote`, { id: moved.id })).body;
  expect(due.deadline).toBeLessThan(deadline);
  expect((await post(`${path}/cancel`, { id: due.id })).body).toEqual({ done: true });
  expect((await post(`${path}/cancel`, { id: due.id })).body).toEqual({ done: false });
  expect((await get(`${path}?id=${due.id}`)).body).toMatchObject({ state: "gone", id: null });
  expect(await queue.size()).toBe(0);
});

test("a large payload is cut off", async () => {
  const name = uniqueName("dashboard");
  const queue = newLine({ transfer: false, codec: "string" }).getDelayedQueue<string>(name);
  const { id } = await queue.offer("x".repeat(300_000), HOUR);
  const { body } = await newDashboard({ payloads: true }).get(
    `api/queues/${name}/message?id=${id}&payload=1`,
  );
  expect(body).toMatchObject({ size: 300_000, payload: { format: "text", isCut: true } });
  expect(body.payload.text.length).toBe(262_144);
});

test("a process is one consumer, whatever the number of its partitions", async () => {
  const name = uniqueName("dashboard");
  const queue = newLine().getReliableQueue<string>(name, { partitions: 3, codec: "string" });
  for (const key of upTo(20)) await queue.offer("x", 0, { partitionKey: `${key}` });
  for (let taken = 0; taken < 20;) {
    taken += (await queue.takeMany({ limit: 20, timeout: 5_000 })).length;
  }
  const { perPartition } = await queue.stats();
  expect(perPartition.map((one) => one.consumers)).toEqual([1, 1, 1]);
  const { get } = newDashboard();
  const { consumers } = (await get(`api/queues/${name}/consumers`)).body;
  expect(consumers).toMatchObject([
    { name: expect.stringMatching(`/${process.pid}$`), inFlight: 20, partition: null },
  ]);
});

test("follows a message: in flight, dead, redriven, removed", async () => {
  const name = uniqueName("dashboard");
  const queue: ReliableQueue<string> = newLine({ codec: "string" }).getReliableQueue(name);
  const { get, post } = newDashboard({ payloads: true });
  const path = `api/queues/${name}`;
  const { id } = await queue.offer("hello", 0, { key: "k", headers: { a: "b" } });
  const delivery = await queue.take();
  const { body } = await get(`${path}/message?id=${id}`);
  expect(body).toMatchObject({ state: "in flight", key: "k", headers: { a: "b" }, attempts: 1 });
  expect(Math.abs(body.takenAt - Date.now())).toBeLessThan(60_000);
  expect((await get(`${path}/consumers`)).body).toMatchObject({
    consumers: [{ group: queue.group, name: body.consumer, inFlight: 1, partition: null }],
  });
  const process = { takenAt: body.takenAt, pid: globalThis.process.pid, consumer: body.consumer };
  expect(body).toMatchObject({ ...process, host: expect.any(String) });
  expect((await get(`${path}/messages?state=in%20flight`)).body).toMatchObject({
    messages: [{ ...process, id, key: "k", group: queue.group, attempts: 1, host: body.host }],
    next: null,
  });

  await delivery.reject("no good");
  const failures = [{ attempt: 1, at: expect.any(Number), reason: "no good" }];
  const reason = "no good";
  const dead = { id, key: "k", group: queue.group, attempts: 1, reason, failures, size: 5 };
  const read = { isUnreadable: false, beforeRedrive: 0, diedAt: expect.any(Number) };
  expect((await get(`${path}/messages?state=dead`)).body).toMatchObject({
    messages: [{ ...dead, ...read }],
    next: null,
  });
  expect((await get(`${path}/messages?state=dead&payload=1`)).body.messages[0].payload).toEqual({
    format: "text",
    text: "hello",
    isCut: false,
  });
  expect((await get(`${path}/message?key=k`)).body).toMatchObject({
    state: "dead",
    reason: "no good",
    failures,
  });

  const redriven = await post(`${path}/dead/redrive`, { id, delay: HOUR });
  expect(redriven.body).toEqual({ count: 1 });
  expect((await get(`${path}/message?id=${id}`)).body).toMatchObject({ state: "retrying" });
  await post(`${path}/message/promote`, { id });
  await (await queue.take()).reject();
  expect((await post(`${path}/dead/remove`, { id })).body).toEqual({ count: 1 });
  expect((await post(`${path}/dead/remove`, { id })).body).toEqual({ count: 0 });
});

test("messages of a list are counted, and changed together", async () => {
  const name = uniqueName("dashboard");
  const queue: ReliableQueue<string> = newLine().getReliableQueue(name);
  const { get, post } = newDashboard();
  const path = `api/queues/${name}/messages/change`;
  const offered = await queue.offerMany(upTo(3).map((i) => ({ payload: `${i}`, delay: HOUR })));
  const ids = offered.map(({ id }) => id);
  await queue.cancel(ids[0] ?? "");
  const change = async (body: object) => (await post(path, { ids, ...body })).body.count as number;
  expect(await change({ verb: "reschedule", delay: 2 * HOUR, isDry: true })).toBe(2);
  expect((await queue.get(ids[1] ?? ""))?.id).toBe(ids[1]);
  expect(await change({ verb: "cancel" })).toBe(2);
  expect(await change({ verb: "cancel" })).toBe(0);

  const { id } = await queue.offer("x", 0);
  await (await queue.take()).reject("no");
  expect(await change({ ids: [id], verb: "redrive", isDry: true })).toBe(1);
  expect((await get(`api/queues/${name}/message?id=${id}`)).body.state).toBe("dead");
  expect(await change({ ids: [id], verb: "redrive", delay: HOUR })).toBe(1);
  expect(await change({ ids: [id], verb: "remove", isDry: true })).toBe(0);
  for (const bad of [{ verb: "burn" }, { ids: ["x"] }, { ids: upTo(101).map(() => id) }]) {
    expect((await post(path, { ids, verb: "cancel", ...bad })).status).toBe(400);
  }
});

test("the last hour of all queues is kept in minutes, with their sums", async () => {
  const { url } = await startOwnServer();
  const line = newLine({ redis: url, transfer: false });
  for (const name of ["a", "b"]) await line.getDelayedQueue(name).offer("x", HOUR);
  const { get } = newDashboard({ redis: url });
  await get("api/queues");
  const { totals, queues } = (await get("api/lines")).body;
  expect(Object.keys(queues)).toEqual(["a", "b"]);
  expect(queues.a.delayed).toHaveLength(60);
  expect(queues.a.delayed.slice(-2)).toContain(1);
  expect(totals.delayed.slice(-2)).toContain(2);
  expect(totals.delayed[0]).toBeNull();
});

test("with interop, changes keep the layout that Java reads", async () => {
  const name = uniqueName("dashboard");
  const queue = newLine({ interop: "redisson", transfer: false }).getDelayedQueue(name);
  const { id } = await queue.offer("x", HOUR);
  const { post } = newDashboard({ interop: "redisson", callTimeout: 4_000 });
  const path = `api/queues/${name}/message/reschedule`;
  expect((await post(path, { id, delay: 2 * HOUR })).status).toBe(200);
  const { order, timeouts } = queueKeys(name);
  const redis = newRedis();
  expect(await redis.lrangeBuffer(order, 0, -1)).toEqual(
    await redis.zrangeBuffer(timeouts, "0", "-1"),
  );
});

test("a queue's name may consist of dots", async () => {
  const { get } = newDashboard();
  for (const name of [".", "..", "~.", "~~..", "~x", "..."]) {
    const path = /^~*\.{1,2}$/.test(name) ? `~${name}` : name;
    expect((await get(`api/queues/${path}`)).body).toMatchObject({ name });
  }
});

test("dead letters come in pages, and can all be redriven or removed", async () => {
  const name = uniqueName("dashboard");
  const queue: ReliableQueue<number> = newLine().getReliableQueue(name);
  const board = newDashboard();
  await queue.offerMany(upTo(7).map((payload) => ({ payload, delay: 0 })));
  const taken: Delivery<number>[] = [];
  while (taken.length < 7) taken.push(...(await queue.takeMany({ limit: 7 })));
  await Promise.all(taken.map((delivery) => delivery.reject()));
  const pages = await pagesOf(board, `api/queues/${name}/messages?state=dead&limit=3`);
  expect(pages.map((page) => page.length)).toEqual([3, 3, 1]);
  expect(new Set(pages.flat().map(({ id }) => id)).size).toBe(7);
  const redriven = await board.post(`api/queues/${name}/dead/redrive`, { id: "all", delay: HOUR });
  expect(redriven.body).toEqual({ count: 7 });
  expect((await board.post(`api/queues/${name}/dead/remove`, { id: "all" })).body).toEqual({
    count: 0,
  });
});

test("a foreign dead letter is marked as unreadable, in the list and on its own", async () => {
  const name = uniqueName("dashboard");
  const queue: ReliableQueue<string> = newLine().getReliableQueue(name);
  // A handler may give the same word as its reason.
  const { id } = await queue.offerAt("x", Date.now() - 60_000);
  await (await queue.take()).reject("unreadable");
  await newRedis().xadd(queueKeys(name).dead, "*", "what", "is this?");
  const { get, post } = newDashboard();
  const path = `api/queues/${name}`;
  const { messages: letters } = (await get(`${path}/messages?state=dead`)).body;
  expect(letters).toMatchObject([
    { id, reason: "unreadable", isUnreadable: false },
    { reason: "unreadable", isUnreadable: true },
  ]);
  for (const { id: listed, isUnreadable } of letters) {
    const { body } = await get(`${path}/message?id=${listed}`);
    expect(body).toMatchObject({ state: "dead", isUnreadable });
  }
  const unreadable = letters[1].id as string;
  expect((await post(`${path}/dead/redrive`, { id: unreadable })).body).toEqual({ count: 0 });
  expect((await post(`${path}/dead/remove`, { id: unreadable })).body).toEqual({ count: 1 });
});

test("the quarantine is listed, requeued and cleared", async () => {
  const name = uniqueName("dashboard");
  const { quarantine } = queueKeys(name);
  const redis = newRedis();
  await redis.rpush(quarantine, "{", "y".repeat(70_000), "z");
  const { get, post } = newDashboard({ payloads: true });
  const path = `api/queues/${name}/quarantine`;
  expect((await get(`${path}?limit=1`)).body).toEqual({ size: 3, items: [{ size: 1 }] });
  expect((await get(`${path}?payload=1`)).body.items).toEqual([
    { size: 1, payload: { format: "text", text: "{", isCut: false } },
    { size: 70_000, payload: null },
    { size: 1, payload: { format: "text", text: "z", isCut: false } },
  ]);
  expect((await post(`${path}/requeue`)).body).toEqual({ count: 3 });
  expect(await redis.llen(name)).toBe(3);
  await redis.rpush(quarantine, "again");
  expect((await post(`${path}/remove`)).body).toEqual({ count: 1 });
  expect(await redis.exists(quarantine)).toBe(0);
});

test("a queue is paused and resumed", async () => {
  const queue = newLineThatMayFail().getReliableQueue(uniqueName("dashboard"));
  await queue.offer("x", HOUR);
  const { post } = newDashboard();
  expect((await post(`api/queues/${queue.name}/pause`)).body).toEqual({ done: true });
  expect(await queue.isPaused()).toBe(true);
  expect((await post(`api/queues/${queue.name}/resume`)).body).toEqual({ done: true });
  expect(await queue.isPaused()).toBe(false);
});

test("a queue's name may contain special characters", async () => {
  const name = `${uniqueName()}/ü%2F?&#.. "x"`;
  await newLine({ transfer: false }).getDelayedQueue(name).offer("x", HOUR);
  const { body } = await newDashboard().get(`api/queues/${encodeURIComponent(name)}`);
  expect(body).toMatchObject({ name, delayed: 1 });
});

test("a queue that becomes partitioned is shown with its partitions", async () => {
  const { url } = await startOwnServer();
  const { get } = newDashboard({ redis: url });
  const queue = newLine({ redis: url, transfer: false }).getDelayedQueue("orders");
  await queue.offer("x", HOUR);
  expect((await get("api/queues/orders")).body).toMatchObject({ partitions: 0, delayed: 1 });
  await newLine({ redis: url, transfer: false }).setPartitions("orders", 2);
  await eventually(async () => {
    const { body } = await get("api/queues/orders/messages?state=delayed");
    expect(body.messages).toHaveLength(1);
    expect((await get("api/queues/orders")).body).toMatchObject({ partitions: 2, delayed: 1 });
  });
});
