import { setTimeout as sleep } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { EventStreams } from "../../../src/tools/dashboard/calls/event-streams.ts";
import { QueueView } from "../../../src/tools/view/samples/queue-view.ts";
import { Sampler, type Round } from "../../../src/tools/view/samples/sampler.ts";
import { Inspector } from "../../../src/tools/view/inspector.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { eventsOf, fromHere, newDashboard } from "../../helpers/dashboard.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
import { watchCommands } from "../../helpers/monitor.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";

const HOUR = 3_600_000;

/** Counts how often the numbers of a queue are read, alone or in one command with those of others. */
async function countReads(name: string, url: string): Promise<() => Promise<number>> {
  const commands = await watchCommands(queueKeys(name).timeouts, url);
  // A script that Redis does not know yet is sent a second time, as its text.
  return async () => (await commands()).filter(([command]) => command === "evalsha").length;
}

function newSampler(url: string, rhythm: { round: number; search: number }): Sampler {
  const inspector = new Inspector({ redis: url });
  const sampler = new Sampler(inspector, undefined, rhythm);
  onTestFinished(async () => {
    sampler.close();
    await inspector.close();
  });
  return sampler;
}

/** Opens a page's stream of events. */
async function openStream({ board }: ReturnType<typeof newDashboard>, queue = "") {
  const leaving = new AbortController();
  const path = `http://localhost/api/events${queue === "" ? "" : `?queue=${queue}`}`;
  const response = await board(fromHere(new Request(path, { signal: leaving.signal })));
  const events = eventsOf(response);
  onTestFinished(() => leaving.abort());
  return { response, events, leave: () => leaving.abort() };
}

test("a stream sends all queues, and one queue in detail even if it is empty", async () => {
  const { url } = await startOwnServer();
  const name = uniqueName("events");
  await newLine({ redis: url, transfer: false }).getDelayedQueue(name).offer("x", HOUR);
  const missing = uniqueName("missing");
  const { response, events } = await openStream(newDashboard({ redis: url }), missing);
  expect(response.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
  expect(response.headers.get("cache-control")).toBe("no-store");
  const { event, data } = (await events.next()).value as any;
  expect(event).toBe("queues");
  expect(data.queues).toContainEqual(expect.objectContaining({ name, delayed: 1 }));
  expect((await events.next()).value).toMatchObject({
    event: "queue",
    data: { at: data.at, name: missing, delayed: 0, perPartition: [] },
  });
});

test("all watchers share one round", async () => {
  const { url } = await startOwnServer();
  await newLine({ redis: url, transfer: false }).getDelayedQueue("orders").offer("x", HOUR);
  const reads = await countReads("orders", url);
  const sampler = newSampler(url, { round: 60_000, search: 60_000 });
  const rounds: Round[][] = [[], [], [], [], []];
  for (const seen of rounds) sampler.watch("orders", (round) => seen.push(round));
  await eventually(() => rounds.every((seen) => seen.length > 0));
  // A later watcher gets the fresh round.
  sampler.watch("orders", (round) => rounds[0]?.push(round));
  expect(await reads()).toBe(1);
  expect(new Set(rounds.flat()).size).toBe(1);
  expect(rounds[0]?.[1]?.samples.get("orders")?.row).toMatchObject({ delayed: 1 });
});

test("reads numbers repeatedly with watchers, and never without", async () => {
  const { url } = await startOwnServer();
  await newLine({ redis: url, transfer: false }).getDelayedQueue("orders").offer("x", HOUR);
  const reads = await countReads("orders", url);
  const sampler = newSampler(url, { round: 40, search: 10_000 });
  let rounds = 0;
  const leave = sampler.watch(undefined, () => rounds++);
  await eventually(() => rounds >= 4);
  leave();
  // The running round ends, and no other follows.
  let before: number;
  do {
    before = await reads();
    await sleep(200);
  } while ((await reads()) > before);
  // A new watcher starts rounds again.
  sampler.watch(undefined, () => rounds++);
  await eventually(async () => (await reads()) > before);
});

test("of many queues those at rest are read in every tenth round, and others always", async () => {
  const { url } = await startOwnServer();
  const line = newLine({ redis: url, transfer: false });
  const names = Array.from({ length: 30 }, (_, i) => `queue-${String(i).padStart(2, "0")}`);
  for (const name of names) await line.getDelayedQueue(name).offer("x", HOUR);
  await newRedis(url).rpush("queue-07", "ready");
  const counts = await Promise.all(
    ["queue-20", "queue-07", "queue-25"].map((name) => countReads(name, url)),
  );
  const sampler = newSampler(url, { round: 10, search: 600_000 });
  let last: Round | undefined;
  let rounds = 0;
  sampler.watch("queue-25", (round) => {
    rounds++;
    last = round;
  });
  await eventually(() => rounds >= 22);
  const [resting = 0, busy, watched] = await Promise.all(counts.map((count) => count()));
  expect(resting).toBeGreaterThanOrEqual(3);
  expect(resting).toBeLessThanOrEqual(rounds / 3);
  expect(busy).toBeGreaterThanOrEqual(22);
  expect(watched).toBeGreaterThanOrEqual(22);
  // What changes in a queue at rest is seen in its turn.
  await line.getDelayedQueue("queue-20").offer("y", HOUR);
  await eventually(() => expect(last?.samples.get("queue-20")?.row.delayed).toBe(2));
});

test("sends a queue again only when it has changed, and reads many in one command", async () => {
  const { url } = await startOwnServer();
  const line = newLine({ redis: url, transfer: false });
  const names = Array.from({ length: 30 }, (_, i) => `queue-${String(i).padStart(2, "0")}`);
  for (const name of names) await line.getDelayedQueue(name).offer("x", HOUR);
  const inspector = new Inspector({ redis: url });
  const sampler = new Sampler(inspector, undefined, { round: 10, search: 50 });
  const streams = new EventStreams(sampler, new QueueView(inspector));
  onTestFinished(async () => {
    streams.close();
    sampler.close();
    await inspector.close();
  });
  const events = eventsOf(streams.open("queue-07", new Request("http://localhost/api/events")));
  const seen: { event: string; data: any }[] = [];
  const until = async (isDone: (event: string, data: any) => boolean) => {
    for (;;) {
      const { event, data } = (await events.next()).value as (typeof seen)[number];
      seen.push({ event, data });
      if (isDone(event, data)) return;
    }
  };
  const all = names.map((name) => expect.objectContaining({ name, delayed: 1 }));
  await until((event) => event === "queue");
  expect(seen[0]).toMatchObject({ event: "queues", data: { queues: all } });
  // Twenty rounds and more at rest, with searches, send nothing.
  let rounds = 0;
  sampler.watch(undefined, () => rounds++);
  const commands = await watchCommands(queueKeys("queue-03").timeouts, url);
  await eventually(() => rounds >= 22);
  const [words = []] = await commands();
  expect(words.filter((word) => /timeout:/.test(word)).length).toBeGreaterThanOrEqual(3);
  seen.length = 0;
  await line.getDelayedQueue("queue-07").offer("y", HOUR);
  await until((event) => event === "queue");
  expect(seen).toMatchObject([
    { event: "changes", data: { queues: [{ name: "queue-07", delayed: 2 }], gone: [] } },
    { event: "queue", data: { name: "queue-07", delayed: 2 } },
  ]);
  seen.length = 0;
  await line.getDelayedQueue("queue-12").clear();
  await until((_, data) => data.gone?.length === 1);
  expect(seen.at(-1)?.data).toMatchObject({ queues: [], gone: ["queue-12"] });
});

test("finds new queues, and drops queues that are gone", async () => {
  const { url } = await startOwnServer();
  const line = newLine({ redis: url, transfer: false });
  const sampler = newSampler(url, { round: 20, search: 60 });
  let names: string[] = [];
  sampler.watch(undefined, ({ samples }) => (names = [...samples.keys()]));
  await line.getDelayedQueue("b").offer("x", HOUR);
  await eventually(() => expect(names).toEqual(["b"]));
  await line.getDelayedQueue("a").offer("x", HOUR);
  await eventually(() => expect(names).toEqual(["a", "b"]));
  await line.getDelayedQueue("b").clear();
  await eventually(() => expect(names).toEqual(["a"]));
});

test("a queue that cannot be read has an error, and the others their numbers", async () => {
  const { url } = await startOwnServer();
  await newLine({ redis: url, transfer: false }).getDelayedQueue("good").offer("x", HOUR);
  await newRedis(url).set(queueKeys("bad").timeouts, "no zset");
  const { body } = await newDashboard({ redis: url }).get("api/queues");
  expect(body.queues).toMatchObject([
    { name: "bad", delayed: 0, error: expect.stringMatching(/"bad".*WRONGTYPE/) },
    { name: "good", delayed: 1 },
  ]);
  expect(body.queues[1]).not.toHaveProperty("error");
});

test("while Redis does not answer the last numbers stay, and one cause is said once", async () => {
  const server = await startOwnServer({ appendOnly: true });
  const line = newLine({ redis: server.url, transfer: false });
  for (const name of ["orders", "mails"]) await line.getDelayedQueue(name).offer("x", HOUR);
  const inspector = new Inspector({ redis: server.url, callTimeout: 200 });
  const sampler = new Sampler(inspector, undefined, { round: 20, search: 20 });
  onTestFinished(async () => {
    sampler.close();
    await inspector.close();
  });
  let last: Round | undefined;
  sampler.watch(undefined, (round) => (last = round));
  await eventually(() => last?.samples.get("orders")?.row.delayed === 1);
  const wellAt = last?.at ?? NaN;
  server.pause();
  await eventually(() => expect(last?.trouble).toMatchObject({ level: "error", kind: "silent" }));
  const { since = NaN } = last?.trouble ?? {};
  expect(since).toBeGreaterThanOrEqual(wellAt - 100);
  expect([...(last?.samples.keys() ?? [])]).toEqual(["mails", "orders"]);
  for (const { row } of last?.samples.values() ?? []) {
    expect(row).toMatchObject({ delayed: 1, kind: "plain", problems: [{ name: "no-transfer" }] });
    expect(row).not.toHaveProperty("error");
  }
  // The instant stays, and no event tells the same again.
  const first = last?.trouble;
  const before = last;
  await eventually(() => last !== before);
  expect(last?.trouble).toBe(first);
  server.resume();
  await eventually(() => {
    expect(last?.trouble).toBeUndefined();
    expect(last?.samples.get("orders")?.row).toMatchObject({ delayed: 1 });
    expect(last?.samples.get("orders")?.row).not.toHaveProperty("error");
  });
});

test("emits no process warnings while Redis is down", async () => {
  const server = await startOwnServer();
  const warnings: Error[] = [];
  const listener = (warning: Error) => void warnings.push(warning);
  process.on("warning", listener);
  onTestFinished(() => void process.off("warning", listener));
  const board = newDashboard({ redis: server.url, callTimeout: 1500 });
  expect((await board.get("api/queues/orders")).status).toBe(200);
  await server.stop();
  expect((await board.get("api/queues/orders")).status).toBe(503);
  await sleep(50);
  expect(warnings).toEqual([]);
});

test("a stream ends when its client disconnects, and when the dashboard closes", async () => {
  // A server of its own: the queues of other tests would make rounds long.
  const { url } = await startOwnServer();
  const name = uniqueName("events");
  const reads = await countReads(name, url);
  const board = newDashboard({ redis: url });
  const gone = await openStream(board, name);
  await gone.events.next();
  gone.leave();
  for await (const _ of gone.events);
  const before = await reads();
  expect(before).toBeGreaterThan(0);

  const open = await openStream(board, name);
  await open.events.next();
  await board.board.close();
  for await (const _ of open.events);
  // A client that disconnected before the response.
  const { board: other } = newDashboard();
  const signal = AbortSignal.abort();
  const response = await other(fromHere(new Request("http://localhost/api/events", { signal })));
  for await (const _ of eventsOf(response));
});

test("refuses more than a hundred streams", async () => {
  const { url } = await startOwnServer();
  const board = newDashboard({ redis: url });
  const streams = await Promise.all(Array.from({ length: 101 }, () => openStream(board)));
  const statuses = streams.map(({ response }) => response.status);
  expect(statuses.filter((status) => status === 503)).toHaveLength(1);
  streams[0]?.leave();
  expect((await openStream(board)).response.status).toBe(200);
});

test("keeps only a few events for a client that does not read", async () => {
  // A server of its own: the queues of other tests would make rounds long.
  const { url } = await startOwnServer();
  const inspector = new Inspector({ redis: url });
  const sampler = new Sampler(inspector, undefined, { round: 5, search: 10_000 });
  const streams = new EventStreams(sampler, new QueueView(inspector));
  onTestFinished(async () => {
    streams.close();
    sampler.close();
    await inspector.close();
  });
  const redis = newRedis(url);
  await newLine({ redis: url, transfer: false }).getDelayedQueue("orders").offer("x", HOUR);
  let rounds = 0;
  sampler.watch(undefined, () => {
    rounds++;
    redis.rpush("orders", "each round differs").catch(() => {});
  });
  const response = streams.open(undefined, new Request("http://localhost/api/events"));
  await eventually(() => rounds > 10);
  streams.close();
  let kept = 0;
  for await (const _ of eventsOf(response)) kept++;
  expect(kept).toBe(3);
});
