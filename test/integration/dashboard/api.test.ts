import { hostname } from "node:os";
import { expect, onTestFinished, test, vi } from "vitest";
import type { Delivery, ReliableQueue } from "../../../src/index.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { networkTime } from "../../../src/time/runtime.ts";
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
  expect(open.body).toEqual({
    readOnly: false,
    payloads: true,
    where: expect.stringMatching(/^127\.0\.0\.1:\d+, database 0$/),
    version: expect.any(String),
  });
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
    groups: 1,
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

  const change = async (more: object) =>
    (await post(`${path}/messages/change?state=dead`, { ids: [id], ...more })).body.count as number;
  const place = (await get(`${path}/message?key=k`)).body.place as string;
  expect(await change({ verb: "redrive", places: [place], delay: HOUR, isDry: true })).toBe(1);
  expect(await change({ verb: "redrive", places: [place], delay: HOUR })).toBe(1);
  expect(await change({ verb: "redrive", places: [place], isDry: true })).toBe(0);
  expect((await get(`${path}/message?id=${id}`)).body).toMatchObject({ state: "retrying" });
  await post(`${path}/message/promote`, { id });
  await (await queue.take()).reject();
  const again = [(await get(`${path}/message?key=k`)).body.place as string];
  expect(await change({ verb: "remove", places: again })).toBe(1);
  expect(await change({ verb: "remove", places: again })).toBe(0);
});

test("a message is revoked wherever it is: a dry run says where, and who has it", async () => {
  const name = uniqueName("dashboard");
  const queue: ReliableQueue<string> = newLine().getReliableQueue(name, { maxAttempts: 3 });
  const { get, post } = newDashboard();
  const path = `api/queues/${name}`;
  const [far, running] = await queue.offerMany([
    { payload: "later", delay: HOUR },
    { payload: "now", delay: 0, key: "k" },
  ]);
  const delivery = await queue.take();
  const revoke = async (id: string | undefined, more: object = {}) =>
    (await post(`${path}/message/revoke`, { id, ...more })).body;

  const place = { stage: "running", group: "default", attempts: 1 };
  const has = { group: "default", host: hostname(), pid: process.pid };
  const dry = await revoke(running?.id, { isDry: true });
  expect(dry).toMatchObject({ stage: "running", places: [place], running: [has] });
  expect(dry.running[0].takenAt).toBeGreaterThan(Date.now() - 60_000);
  expect(delivery.signal.aborted).toBe(false);

  const said = await revoke(running?.id, { reason: "paid" });
  expect(said).toMatchObject({ stage: "running", places: [place], hasEnded: false });
  await eventually(() => delivery.signal.aborted);
  expect(delivery.signal.reason).toMatchObject({ code: "REVOKED", reason: "paid" });
  expect(await delivery.ack()).toBe(false);

  expect(await revoke(far?.id, { isDry: true })).toMatchObject({ stage: "delayed", running: [] });
  expect(await revoke(far?.id)).toMatchObject({ stage: "delayed", hasEnded: true });
  expect(await revoke(far?.id)).toMatchObject({ stage: "gone", places: [] });
  const { entries } = (await get(`${path}/log`)).body;
  expect(entries.map(({ what }: { what: string }) => what)).toEqual([
    `revoked 1 message: ${far?.id}, delayed`,
    `revoked 1 message: ${running?.id}, running: paid`,
  ]);
});

test("messages of a list are revoked together", async () => {
  const name = uniqueName("dashboard");
  const queue: ReliableQueue<string> = newLine().getReliableQueue(name);
  const { get, post } = newDashboard();
  const offered = await queue.offerMany(upTo(3).map((i) => ({ payload: `${i}`, delay: 0 })));
  const ids = offered.map(({ id }) => id);
  const taken = await queue.takeMany({ limit: 2 });
  const revoke = (state: string, body: object) =>
    post(`api/queues/${name}/messages/change?state=${state}`, { verb: "revoke", ids, ...body });
  expect((await revoke("in flight", { isDry: true })).body.count).toBe(3);
  expect(
    (await revoke("in flight", { ids: ids.slice(0, 2), reason: "a mistake" })).body.count,
  ).toBe(2);
  for (const delivery of taken) expect(await delivery.ack()).toBe(false);
  expect((await revoke("ready", {})).body.count).toBe(1);
  expect(await queue.stats()).toMatchObject({ ready: 0, inFlight: 0 });
  const { entries } = (await get(`api/queues/${name}/log`)).body;
  expect(entries.map(({ what }: { what: string }) => what)).toEqual([
    "revoked 1 message: chosen in a list",
    "revoked 2 messages: chosen in a list: a mistake",
  ]);
  const bad = [{ isAll: true }, { reason: 1 }, { reason: "x".repeat(501) }];
  for (const body of bad) expect((await revoke("ready", body)).status).toBe(400);
});

test("messages of a plain queue are not revoked", async () => {
  const name = uniqueName("dashboard");
  const { id } = await newLine().getDelayedQueue(name).offer("x", HOUR);
  const { post } = newDashboard();
  const path = `api/queues/${name}`;
  const said = await post(`${path}/message/revoke`, { id });
  expect(said).toMatchObject({ status: 400, body: { error: expect.stringContaining("is plain") } });
  const change = { verb: "revoke", ids: [id] };
  expect((await post(`${path}/messages/change?state=delayed`, change)).status).toBe(400);
});

test("messages of a list are counted, and changed together", async () => {
  const name = uniqueName("dashboard");
  const queue: ReliableQueue<string> = newLine().getReliableQueue(name);
  const { post } = newDashboard();
  const path = `api/queues/${name}/messages/change?state=delayed`;
  const offered = await queue.offerMany(upTo(3).map((i) => ({ payload: `${i}`, delay: HOUR })));
  const ids = offered.map(({ id }) => id);
  await queue.cancel(ids[0] ?? "");
  const change = async (body: object) => (await post(path, { ids, ...body })).body.count as number;
  expect(await change({ verb: "reschedule", delay: 2 * HOUR, isDry: true })).toBe(2);
  expect((await queue.get(ids[1] ?? ""))?.id).toBe(ids[1]);
  expect(await change({ verb: "cancel" })).toBe(2);
  expect(await change({ verb: "cancel" })).toBe(0);
  for (const bad of [
    { verb: "burn" },
    { verb: "requeue" },
    { ids: ["x"] },
    { ids: undefined },
    { ids: upTo(101).map(() => ids[0]) },
  ]) {
    expect((await post(path, { ids, verb: "cancel", ...bad })).status).toBe(400);
  }
});

test("all that a list's filter lets through is counted, and changed in batches", async () => {
  const name = uniqueName("dashboard");
  const queue: ReliableQueue<string> = newLine().getReliableQueue(name);
  const { post } = newDashboard({ payloads: true });
  const offer = (payload: string, key: string) => ({ payload, delay: HOUR, key });
  await queue.offerMany(upTo(250).map((i) => offer(i % 2 ? "red" : "blue", `a:${i}`)));
  await queue.offerMany(upTo(3).map((i) => offer("red", `b:${i}`)));
  const path = `api/queues/${name}/messages/change`;
  /** Goes on from page to page, as the page does. */
  const change = async (query: string, body: object) => {
    const told: number[] = [];
    for (let after = ""; ;) {
      const said = await post(`${path}?state=delayed&limit=1${query}${after}`, {
        isAll: true,
        ...body,
      });
      expect(said.status).toBe(200);
      // A reply whose time was over before the next step has nothing new to tell.
      if (said.body.count !== undefined) told.push(said.body.count);
      if (said.body.next === null) return told;
      after = `&after=${said.body.next}`;
    }
  };
  expect((await change("&prefix=a:", { verb: "cancel", isDry: true })).at(-1)).toBe(250);
  expect((await change("&text=red", { verb: "cancel", isDry: true })).at(-1)).toBe(128);
  // Later than all others, and so at the end of the list that is being read.
  expect(await change("&prefix=a:", { verb: "reschedule", delay: 2 * HOUR })).toEqual([
    100, 200, 250, 250,
  ]);
  expect((await change("&prefix=a:&text=red", { verb: "cancel" })).at(-1)).toBe(125);
  expect((await queue.stats()).delayed).toBe(128);
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
  const change = async (body: object) =>
    (await board.post(`api/queues/${name}/messages/change?state=dead`, { isAll: true, ...body }))
      .body.count as number;
  expect(await change({ verb: "redrive", isDry: true })).toBe(7);
  expect(await change({ verb: "redrive", delay: HOUR })).toBe(7);
  expect(await change({ verb: "remove" })).toBe(0);
});

test("dead letters are counted by reason, listed by reason, and changed by reason", async () => {
  const name = uniqueName("dashboard");
  const queue: ReliableQueue<string> = newLine().getReliableQueue(name);
  const { get, post } = newDashboard();
  const path = `api/queues/${name}`;
  for (const reason of ["timeout after 31 ms", "timeout after 2 ms", "refused"]) {
    await queue.offer("x", 0);
    await (await queue.take()).reject(reason);
  }
  // The count knows the first 1,000 bytes of a reason: by these its letters are found, too.
  await queue.offer("x", 0);
  await (await queue.take()).reject(`x${"é".repeat(800)}`);
  const { body } = await get(`${path}/dead/reasons`);
  expect(body).toMatchObject({
    groups: [
      { reason: "timeout after # ms", count: 2, group: queue.group, isUnreadable: false },
      { reason: "refused", count: 1 },
      { count: 1, variants: [{ count: 1 }] },
    ],
    read: 4,
    total: 4,
  });
  const listed = async (params: Record<string, string>) =>
    (await get(`${path}/messages?${String(new URLSearchParams({ state: "dead", ...params }))}`))
      .body;
  const [long] = body.groups[2].variants;
  expect((await listed({ reason: long.reason })).messages).toHaveLength(1);
  expect(await listed({ reason: "no such" })).toMatchObject({ messages: [], looked: 4 });

  const { reason, group } = body.groups[0];
  const query = new URLSearchParams({ state: "dead", reason, group }).toString();
  expect((await listed({ reason, group })).messages).toHaveLength(2);
  const change = async (more: object) =>
    (await post(`${path}/messages/change?${query}`, { isAll: true, ...more })).body.count as number;
  expect(await change({ verb: "redrive", isDry: true })).toBe(2);
  expect(await change({ verb: "redrive", delay: HOUR })).toBe(2);
  // What was done from the page is in the queue's log, too.
  const [left] = (await listed({ reason: "refused" })).messages;
  await queue.offerMany(["k:1", "k:2"].map((key) => ({ payload: "x", delay: HOUR, key })));
  const bulk = (of: string, what: object) => post(`${path}/messages/change?${of}`, what);
  await bulk("state=dead", { verb: "remove", places: [left.place], isDry: true });
  await bulk("state=dead", { verb: "redrive", places: [left.place], delay: HOUR });
  await bulk("state=delayed&prefix=k:1", { verb: "cancel", isAll: true });
  await bulk("state=delayed&prefix=k:2&from=1", { verb: "cancel", isAll: true });
  const { entries } = (await get(`${path}/log`)).body;
  expect(entries.map(({ what }: { what: string }) => what)).toEqual([
    "cancelled 1 message",
    "cancelled 1 message: prefix k:1",
    "redrove 1 dead letter: chosen in a list",
    `redrove 2 dead letters: reason timeout after # ms, group ${group}`,
  ]);
  expect(entries[0]).toMatchObject({ by: expect.stringMatching(/\/\d+$/), at: expect.any(Number) });
  expect((await get(`${path}/dead/reasons`)).body.groups).toMatchObject([{ count: 1 }]);
  expect(await queue.deadLetters.size()).toBe(1);
});

test("the flow of a queue is told in words, with the lanes in which most messages wait", async () => {
  const name = uniqueName("dashboard");
  const queue = newLine().getDelayedQueue<number>(name);
  const { get } = newDashboard();
  const path = `api/queues/${name}`;
  const nothing = { flow: null, waiting: 0, lanes: [], isMore: false };
  expect((await get(`${path}/flow`)).body).toEqual(nothing);
  await queue.flow.set({ lane: {}, lanes: { a: { weight: 2 } }, ahead: 1 });
  await queue.offerMany(
    Array.from({ length: 100 }, (_, i) => ({
      payload: i,
      delay: 0,
      key: `k${i}`,
      lane: i < 30 ? "loud" : `lane ${i % 25}`,
      priority: 5,
    })),
  );
  await eventually(async () => (await queue.flow.state()).waiting === 99);
  const { body } = await get(`${path}/flow`);
  expect(body).toMatchObject({
    flow: "lanes in turns, 1 lane with limits of its own, 1 ready ahead",
    waiting: 99,
    isMore: true,
  });
  expect(body.lanes).toHaveLength(20);
  expect(body.lanes[0]).toMatchObject({ lane: "loud", restsUntil: null });
  expect(body.lanes[0].waiting).toBeGreaterThanOrEqual(29);
  const { body: one } = await get(`${path}/message?key=k99`);
  expect(one).toMatchObject({ state: "delayed", lane: "lane 24", priority: 5 });
  await queue.flow.set({ rate: { limit: 5, per: 1000 } });
  expect((await get(`${path}/flow`)).body.flow).toBe("5 messages in 1 s");
});

test("a lane can be paused, whatever code sets, and unpinned", async () => {
  const name = uniqueName("dashboard");
  const queue = newLine({ transfer: false }).getDelayedQueue<number>(name);
  const { get, post } = newDashboard();
  const path = `api/queues/${name}`;
  const refused = await post(`${path}/lanes/change`, { name: "acme", verb: "pause" });
  expect(refused.status).toBe(409);
  expect(refused.body.error).toMatch(/has no lanes/);
  await queue.flow.set({ lane: {} });
  expect((await post(`${path}/lanes/change`, { name: "acme", verb: "pause" })).status).toBe(200);
  await queue.flow.set({ lane: { rate: { limit: 5, per: 1000 } } });
  expect((await get(`${path}/flow`)).body.lanes).toMatchObject([
    { lane: "acme", waiting: 0, pinned: "paused" },
  ]);
  const { entries } = (await get(`${path}/log`)).body;
  expect(entries[1].what).toMatch(/acme/);
  expect((await post(`${path}/lanes/change`, { name: "acme", verb: "unpin" })).status).toBe(200);
  expect((await get(`${path}/flow`)).body.lanes).toEqual([]);
  for (const body of [
    { verb: "pause" },
    { name: "acme", verb: "hold" },
    { name: "", verb: "pause" },
  ])
    expect((await post(`${path}/lanes/change`, body)).status).toBe(400);
});

test("the coming month is counted over all queues; an hour leads to its queues", async () => {
  const { url } = await startOwnServer();
  const line = newLine({ redis: url, transfer: false });
  const from = Math.floor((await line.serverTime()) / HOUR) * HOUR;
  await line.getDelayedQueue("a").offerAt("x", from + 5.5 * HOUR);
  await line.getDelayedQueue("b").offerMany(upTo(3).map((i) => ({ payload: i, delay: 48 * HOUR })));
  await line.getReliableQueue("c", { partitions: 2 }).offerAt("x", from + 5.1 * HOUR);
  // Two ticks are placed, and the month would have 744.
  await line.getDelayedQueue("d").schedules.upsert("hourly", { every: HOUR, payload: "x" });
  const { get } = newDashboard({ redis: url });
  const { totals, beyond, step, failed } = (await get(`api/month?from=${from}`)).body;
  expect({ length: totals.length, step, failed }).toEqual({ length: 744, step: HOUR, failed: [] });
  expect(totals[5]).toBe(2);
  expect(totals.reduce((sum: number, one: number) => sum + one, 0)).toBe(7);
  expect(beyond).toMatchObject([{ queue: "d", schedule: "hourly" }]);
  expect((await get(`api/month/cell?from=${from}&hour=5`)).body).toEqual({
    queues: [
      { name: "a", count: 1 },
      { name: "c", count: 1 },
    ],
  });
  const range = `from=${from + 5 * HOUR}&until=${from + 6 * HOUR}`;
  expect((await get(`api/queues/a/messages?state=delayed&${range}`)).body.messages).toHaveLength(1);
  expect((await get(`api/queues/b/messages?state=delayed&${range}`)).body.messages).toEqual([]);
  expect((await get("api/month/cell?hour=744")).status).toBe(400);
});

test("a search looks into all queues and states, and says where it could not look", async () => {
  const { url } = await startOwnServer();
  const line = newLine({ redis: url });
  const plain = line.getDelayedQueue<string>("plain");
  const mail = line.getReliableQueue<string>("mail");
  await line.getReliableQueue<string>("parts", { partitions: 3 }).offer("x", HOUR, { key: "k" });
  await mail.offer("x", 0, { key: "k" });
  await (await mail.take()).reject("no");
  await mail.offer("x", 0, { key: "k" });
  const held = await mail.take();
  await plain.offer("x", 0, { key: "k" });
  const board = newDashboard({ redis: url });
  const found = async (q: string) => {
    const hits: any[] = [];
    for (let after = ""; ;) {
      const { body } = await board.get(`api/search?q=${q}${after && `&after=${after}`}`);
      hits.push(...body.hits);
      if (body.next === null) return { hits, report: body.report };
      after = body.next as string;
    }
  };
  await eventually(async () => (await line.stats("plain")).ready === 1);
  const { hits, report } = await found("k");
  expect(hits.map(({ queue, state }) => `${queue} ${state}`).toSorted()).toEqual([
    "mail dead",
    "mail in flight",
    "parts delayed",
  ]);
  const everything = { queues: 3, unread: [], unsearchable: ["plain"], failed: [] };
  expect(report).toEqual({ ...everything, forgetful: [] });
  const nobody = await found("nobody");
  expect(nobody.hits).toEqual([]);
  expect(nobody.report.forgetful.toSorted()).toEqual(["mail", "parts"]);
  expect((await found(held.id)).hits).toMatchObject([{ queue: "mail", state: "in flight" }]);
  await held.ack();
});

test("a handled message is found with its life, if its queue remembers it", async () => {
  const { url } = await startOwnServer();
  const queue = newLine({ redis: url }).getReliableQueue<string>("bills", { keepHandled: HOUR });
  const { id } = await queue.offer("x", 0, { key: "bill:1" });
  await (await queue.take()).ack();
  const { get } = newDashboard({ redis: url });
  const { hits, report } = (await get("api/search?q=bill:1")).body;
  expect(hits).toMatchObject([{ queue: "bills", id, key: "bill:1", state: "handled" }]);
  expect(report).toMatchObject({ queues: 1, forgetful: [] });
  const { body } = await get(`api/queues/bills/message?id=${id}`);
  expect(body).toMatchObject({ state: "handled", id, attempts: 1, group: "default", others: [] });
  const life = body.life as { what: string; pid?: number }[];
  expect(life.map(({ what }) => what)).toEqual(["offered", "due", "taken", "handled"]);
  expect(life.at(-1)?.pid).toBe(process.pid);
  const other = await get("api/queues/bills/message?key=bill:2");
  expect(other.body).toMatchObject({ state: "gone", others: [] });
});

test("what all queues have in flight, and what Redis says of itself", async () => {
  const { url } = await startOwnServer();
  const line = newLine({ redis: url });
  const held: Delivery<string>[] = [];
  for (const name of ["a", "b"]) {
    const queue = line.getReliableQueue<string>(name);
    await queue.offer("x", 0, { key: `${name}:1` });
    held.push(await queue.take());
  }
  const { get } = newDashboard({ redis: url });
  const { messages, next } = (await get("api/busy")).body;
  const by = { pid: process.pid, host: expect.any(String), takenAt: expect.any(Number) };
  expect(messages).toMatchObject([
    { queue: "a", key: "a:1", attempts: 1, ...by },
    { queue: "b", key: "b:1", attempts: 1, ...by },
  ]);
  expect(next).toBeNull();
  expect((await get("api/redis")).body.servers).toMatchObject([
    {
      address: expect.stringContaining("127.0.0.1:"),
      role: "master",
      usedMemory: expect.any(Number),
      operations: expect.any(Number),
      isAppending: false,
    },
  ]);
  for (const delivery of held) await delivery.ack();
});

test("the doctor is asked through the page, once for all who ask", async () => {
  const { url } = await startOwnServer();
  await newLine({ redis: url }).getDelayedQueue("orders").pause();
  const { get } = newDashboard({ redis: url });
  const [one, other] = await Promise.all([get("api/doctor"), get("api/doctor")]);
  expect(one.body).toEqual(other.body);
  const paused = one.body.findings.find(({ check }: { check: string }) => check === "paused");
  expect(paused).toMatchObject({
    queue: "orders",
    repair: expect.stringContaining(`--redis ${url}`),
  });
});

/** Lets so much time have passed since the test began, for the rest of the test. */
function elapse(milliseconds: number): void {
  const clock = vi
    .spyOn(networkTime, "now")
    .mockImplementation(() => performance.now() + milliseconds);
  onTestFinished(() => clock.mockRestore());
}

test("the doctor is asked by itself, at most every ten minutes, and its worst finding is told apart", async () => {
  const server = await startOwnServer();
  await newLine({ redis: server.url }).getDelayedQueue("orders").pause();
  const { get } = newDashboard({ redis: server.url });
  const [one, other] = await Promise.all([get("api/doctor/latest"), get("api/doctor/latest")]);
  expect(one.body).toEqual(other.body);
  // That a queue is paused its numbers show.
  expect(one.body.lead).toEqual({
    level: "error",
    what: expect.stringContaining("keeps nothing on disk: appendonly is no, and save is empty"),
  });
  expect(one.body).toMatchObject({ summary: "1 error, 1 warning", took: expect.any(Number) });
  expect(one.body.findings.map(({ level }: { level: string }) => level)).toEqual([
    "error",
    "warning",
  ]);

  await newRedis(server.url).config("SET", "appendonly", "yes");
  elapse(590_000);
  expect((await get("api/doctor/latest")).body.at).toBe(one.body.at);
  elapse(610_000);
  const later = (await get("api/doctor/latest")).body;
  expect(later.at).toBeGreaterThan(one.body.at);
  expect(later).toMatchObject({ summary: "1 warning", lead: null });
});

test("the doctor looks again soon where Redis did not answer", async () => {
  const server = await startOwnServer();
  const { get } = newDashboard({ redis: server.url });
  await newRedis(server.url).config("SET", "requirepass", "secret");
  const { body } = await get("api/doctor/latest");
  expect(body.lead.what).toContain("asks for a password");
  elapse(10_000);
  expect((await get("api/doctor/latest")).body.at).toBeGreaterThan(body.at);
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
  const change = async (verb: string) =>
    (await post(`${path}/messages/change?state=dead`, { verb, places: [letters[1].place] })).body
      .count as number;
  expect(await change("redrive")).toBe(0);
  expect(await change("remove")).toBe(1);
});

test.each([
  ["an ordinary queue", {}],
  ["a queue in partitions", { partitions: 2 }],
])("%s: the quarantine is listed, requeued and removed, in part and whole", async (_, options) => {
  const name = uniqueName("dashboard");
  const redis = newRedis();
  const queue = newLine({ transfer: false }).getDelayedQueue(name, options);
  await queue.offer("x", HOUR);
  const [part = name] = (await newLine().partitions(name)).map((one) => one.name);
  const { quarantine, unreadable, ready } = queueKeys(part);
  await redis.rpush(quarantine, "a", "y".repeat(70_000), "b", "c", "c");
  await redis.rpush(unreadable, "whole");
  const { get, post } = newDashboard({ payloads: true });
  const list = async (query = "") => (await get(`api/queues/${name}/payloads?${query}`)).body;
  const { payloads } = await list("payload=1");
  expect(payloads).toMatchObject([
    { position: 1, size: 1, isUnreadable: false, payload: { format: "text", text: "a" } },
    { position: 2, size: 70_000, payload: null },
    { position: 3, payload: { text: "b" } },
    { position: 4 },
    { position: 5 },
    { position: 1, isUnreadable: true, payload: { text: "whole" } },
  ]);
  expect(payloads[0].payload.isCut).toBe(false);
  expect((await list("kind=message")).payloads).toHaveLength(1);
  expect((await list("text=yy")).payloads).toMatchObject([{ position: 2 }]);
  const pages = [await list("limit=4")];
  pages.push(await list(`limit=4&after=${pages[0].next}`));
  expect(pages.map((page) => page.payloads.length)).toEqual([4, 2]);

  const change = async (verb: string, chosen?: readonly number[], isDry = false, filter = "") => {
    const places = chosen?.map((i) => payloads[i].place as string);
    const path = `api/queues/${name}/messages/change?state=quarantined${filter}`;
    const { body } = await post(path, { verb, places, isAll: places === undefined, isDry });
    return body.count as number;
  };
  expect(await change("requeue", [0, 2, 5, 2], true)).toBe(2);
  expect(await redis.llen(quarantine)).toBe(5);
  expect(await change("requeue", [2, 0, 5, 2])).toBe(2);
  expect(await redis.lrange(ready, 0, -1)).toEqual(["a", "b"]);
  // What has moved up is left alone: somebody may have looked at something else.
  expect(await change("remove", [1, 5], true)).toBe(1);
  expect(await change("remove", [1, 5])).toBe(1);
  expect(await redis.exists(unreadable)).toBe(0);
  expect(await redis.lrange(quarantine, 1, -1)).toEqual(["c", "c"]);
  expect(await change("requeue", undefined, true, "&text=c&kind=payload")).toBe(2);
  expect(await change("remove", undefined, true, "&kind=message")).toBe(0);
  expect(await change("requeue", undefined, true)).toBe(3);
  expect(await change("requeue")).toBe(3);
  expect(await redis.llen(ready)).toBe(5);
  await redis.rpush(quarantine, "again");
  expect(await change("remove", undefined, true)).toBe(1);
  expect(await change("remove")).toBe(1);
  expect(await redis.exists(quarantine)).toBe(0);
});

test("the ready payloads of a plain queue are listed, and hidden without the right to see them", async () => {
  const name = uniqueName("dashboard");
  await newRedis().rpush(name, "one", "two");
  const path = `api/queues/${name}/payloads?state=ready`;
  const { body } = await newDashboard({ payloads: true }).get(`${path}&payload=1`);
  expect(body.payloads).toMatchObject([
    { position: 1, size: 3, payload: { text: "one" } },
    { position: 2, size: 3, payload: { text: "two" } },
  ]);
  const { get } = newDashboard();
  expect((await get(path)).body.payloads[0]).not.toHaveProperty("payload");
  expect((await get(`${path}&payload=1`)).status).toBe(403);
  expect((await get(`${path}&text=o`)).status).toBe(403);
});

test("lists are sorted by a field, among the first of a long one", async () => {
  const name = uniqueName("dashboard");
  const queue = newLine({ transfer: false }).getDelayedQueue<string>(name);
  await queue.offerMany(
    upTo(30).map((i) => ({
      payload: "x".repeat((i * 7) % 30),
      delay: HOUR + i * 1000,
      ...(i % 10 !== 0 && { key: `k${i}` }),
    })),
  );
  const board = newDashboard();
  const path = `api/queues/${name}/messages?state=delayed&limit=20`;
  const sizes = (await pagesOf(board, `${path}&sort=-size`)).flat().map(({ size }) => size);
  expect(sizes).toEqual(sizes.toSorted((a, b) => b - a));
  expect(sizes).toHaveLength(30);
  const keys = (await pagesOf(board, `${path}&sort=key`)).flat().map(({ key }) => String(key));
  expect(keys.slice(0, 27)).toEqual(keys.slice(0, 27).toSorted((a, b) => (a < b ? -1 : 1)));
  expect(keys.slice(27)).toEqual(["null", "null", "null"]);
  expect((await board.get(`${path}&sort=size`)).body.sortedAmong).toBe(2000);
  expect((await board.get(`${path}&sort=payload`)).status).toBe(400);
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

test("a name without a queue is not shown as a queue", async () => {
  const { url } = await startOwnServer();
  await newLine({ redis: url, transfer: false }).getDelayedQueue("orders").offer("x", HOUR);
  const { get } = newDashboard({ redis: url });
  expect((await get("api/queues")).body.queues).toMatchObject([{ name: "orders" }]);
  expect((await get("api/queues/odrers")).body).toMatchObject({ delayed: 0, isMissing: true });
  expect((await get("api/queues/orders")).body).not.toHaveProperty("isMissing");
});

test("a message that was dropped when it was due is told from one that is gone", async () => {
  const queue = newLine().getDelayedQueue(uniqueName("dashboard"));
  const { id } = await queue.offer("x", 0, {
    key: "k",
    onlyIf: { key: uniqueName(), exists: true },
  });
  const { get } = newDashboard();
  const dropped = {
    state: "dropped",
    id,
    key: "k",
    reason: "the condition of onlyIf did not hold",
    life: expect.arrayContaining([expect.objectContaining({ what: "dropped" })]),
  };
  for (const of of [`id=${id}`, "key=k"]) {
    await eventually(async () => {
      const { body } = await get(`api/queues/${queue.name}/message?${of}`);
      expect(body).toMatchObject(dropped);
    });
  }
  const { body } = await get(`api/queues/${queue.name}/message?key=other`);
  expect(body).toMatchObject({ state: "gone" });
});

test("a preview tells what becomes ready with the present flow, or with a rate instead", async () => {
  const name = uniqueName("dashboard");
  const queue = newLine({ transfer: false }).getDelayedQueue<number>(name);
  const { get } = newDashboard();
  const path = `api/queues/${name}/preview`;
  await queue.offerMany(upTo(100).map((i) => ({ payload: i, delay: 90_000, lane: "a" })));
  const { body: plain } = await get(path);
  expect(plain).toMatchObject({ flow: null, step: 60_000 });
  expect(plain.spans).toHaveLength(60);
  expect(plain.spans[1]).toMatchObject({ due: 100, ready: 100, waiting: 0 });
  const { body: slow } = await get(`${path}?rate=1&per=60000`);
  expect(slow.flow).toBe("1 message in 1 min");
  expect(slow.spans[1]).toMatchObject({ due: 100, waiting: 99 });
  expect(slow.endsAt).toBe(null);
  await queue.flow.set({ lane: { rate: { limit: 1, per: 1000, burst: 1 } } });
  const { body: lanes } = await get(path);
  expect(lanes.flow).toBe("lanes in turns, each 1 message in 1 s, 1 at once");
  expect(lanes.spans[1].waiting).toBeGreaterThan(60);
  const { body: both } = await get(`${path}?rate=5&span=day`);
  expect(both.flow).toContain("together 5 messages in 1 s");
  expect(both.step).toBe(900_000);
  expect((await get(`${path}?rate=0`)).status).toBe(400);
  expect((await get(`${path}?span=year`)).status).toBe(400);
});
