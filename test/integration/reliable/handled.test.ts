import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { expect, onTestFinished, test } from "vitest";
import type { ScriptEvent } from "../../../src/lua/script.ts";
import { handledIn, lifeOfHandled } from "../../../src/tools/view/handled.ts";
import { Inspector } from "../../../src/tools/view/inspector.ts";
import { eventually } from "../../helpers/eventually.ts";
import { newLine, newLineThatMayFail } from "../../helpers/delayline.ts";
import { newRedis, redisUrl, uniqueName } from "../../helpers/redis.ts";

const HOUR = 3_600_000;

test.each([
  ["an ordinary queue", {}],
  ["a partitioned queue", { partitions: 3 }],
])("%s: what was handled is known by id and by key", async (_, options) => {
  const queue = newLine().getReliableQueue(uniqueName(), {
    ...options,
    keepHandled: HOUR,
    retry: () => 0,
  });
  const { id } = await queue.offer("x", 0, { key: "order:42" });
  await (await queue.take()).nack();
  expect(await queue.handled(id)).toEqual([]);
  await (await queue.take()).ack();
  const [seen, ...others] = await queue.handled(id);
  expect(others).toEqual([]);
  expect(seen).toEqual({
    id,
    key: "order:42",
    group: "default",
    handledAt: expect.any(Date),
    attempt: 2,
    duration: expect.any(Number),
    host: expect.any(String),
    pid: process.pid,
  });
  expect(Math.abs(Number(seen?.handledAt) - Date.now())).toBeLessThan(60_000);
  expect(await queue.handled("order:42")).toEqual([seen]);
  expect(await queue.handled("order:43")).toEqual([]);

  const inspector = new Inspector({ redis: redisUrl() });
  onTestFinished(() => inspector.close());
  const { found, since = Infinity } = await handledIn(await inspector.open(queue.name), id);
  expect(found).toMatchObject([{ queue: queue.name, id, attempt: 2, pid: process.pid }]);
  expect(since).toBeLessThanOrEqual(found[0]?.handledAt ?? 0);
  const life = found.flatMap(lifeOfHandled).map(({ what }) => what);
  expect(life).toEqual(["offered", "due", "taken", "handled"]);
});

test.each([
  ["handlers", {}],
  ["an exclusive handler", { partitions: 2, exclusive: true }],
])("%s: every message that was handled is known", async (_, options) => {
  const queue = newLine().getReliableQueue<number>(uniqueName(), { ...options, keepHandled: HOUR });
  let count = 0;
  queue.subscribe(() => void count++);
  const offered = await queue.offerMany(
    Array.from({ length: 50 }, (__, i) => ({ payload: i, delay: 0, key: `k:${i}` })),
  );
  await eventually(async () => {
    expect(count).toBe(50);
    for (const { id } of offered) expect((await queue.handled(id)).length).toBe(1);
  });
});

test("each group says that it has handled a message; a key finds the last message that had it", async () => {
  const name = uniqueName();
  const line = newLine();
  const [one, two] = ["one", "two"].map((group) =>
    line.getReliableQueue(name, { group, keepHandled: HOUR }),
  );
  if (one === undefined || two === undefined) throw new Error("two queues");
  await two.poll();
  for (let i = 0; i < 2; i++) {
    await one.offer(i, 0, { key: "k" });
    await (await one.take()).ack();
    await (await two.take()).ack();
  }
  const { id } = await one.offer("last", 0, { key: "k" });
  await (await two.take()).ack();
  expect(await one.handled("k")).toMatchObject([{ id, group: "two" }]);
  await (await one.take()).ack();
  expect((await one.handled("k")).map(({ group }) => group)).toEqual(["one", "two"]);
});

test("without the option Redis remembers nothing, and an acknowledgement is the same script", async () => {
  const scripts: string[] = [];
  const note = (run: unknown) => void scripts.push((run as ScriptEvent).script);
  subscribe("delayline:script", note);
  onTestFinished(() => void unsubscribe("delayline:script", note));
  const queue = newLine().getReliableQueue(uniqueName());
  const { id } = await queue.offer("x", 0);
  await (await queue.take()).ack();
  expect(scripts.filter((name) => name.startsWith("ack"))).toEqual(["ack"]);
  expect(await newRedis().exists(`delayline_handled:{${queue.name}}`)).toBe(0);
  expect(await queue.handled(id)).toEqual([]);
  const inspector = new Inspector({ redis: redisUrl() });
  onTestFinished(() => inspector.close());
  const report = await handledIn(await inspector.open(queue.name), id);
  expect(report).toEqual({ found: [], since: undefined });
});

test("a refused note is reported once, and the message is acknowledged all the same", async () => {
  const line = newLineThatMayFail();
  const queue = line.getReliableQueue(uniqueName(), { keepHandled: HOUR });
  const redis = newRedis();
  await redis.set(`delayline_handled:{${queue.name}}`, "a string");
  for (let i = 0; i < 2; i++) {
    await queue.offer(i, 0);
    expect(await (await queue.take()).ack()).toBe(true);
  }
  expect(line.errors.length).toBe(1);
  expect(line.errors[0]?.message).toContain("cannot note which messages");
  expect((await queue.stats()).inFlight).toBe(0);
  await redis.del(`delayline_handled:{${queue.name}}`);
  const { id } = await queue.offer("x", 0);
  await (await queue.take()).ack();
  expect((await queue.handled(id)).length).toBe(1);
  expect(line.recoveries.length).toBe(1);
});

test.each([999, -1, 2_592_000_001, 1.5, "1h"])("keepHandled must be legal: %j", (keepHandled) => {
  const line = newLine();
  expect(() => line.getReliableQueue(uniqueName(), { keepHandled: keepHandled as number })).toThrow(
    /keepHandled must be a whole number/,
  );
});
