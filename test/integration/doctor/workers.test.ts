import { Redis } from "ioredis";
import { expect, it, onTestFinished } from "vitest";
import { queueKeys } from "../../../src/queue/keys.ts";
import { diagnosis, inShort } from "../../helpers/diagnosis.ts";
import { newLine, newLineThatMayFail } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { useSoundServer } from "../../helpers/sound-server.ts";

// Workers that run, and serve nobody: they look elsewhere, take in the wrong way, hang, or wait for a schedule.

const server = useSoundServer();
const keys = queueKeys("orders");
const WAITING = /name=delayline:blocking:orders\S* .* flags=b/;

/** Waits until a line of CLIENT LIST matches. */
async function connected(pattern: RegExp): Promise<void> {
  await eventually(async () =>
    String(await server.admin.client("LIST"))
      .split("\n")
      .some((line) => pattern.test(line)),
  );
}

/** A client of its own with a `keyPrefix`. */
function withPrefix(keyPrefix: string): Redis {
  const redis = new Redis(server.url, { keyPrefix });
  onTestFinished(() => redis.disconnect());
  return redis;
}

it.each([
  ["another database", () => `${server.url}/1`, "database 1 ("],
  ["another keyPrefix", () => withPrefix("shop:"), 'database 0 under keyPrefix "shop:" ('],
])("workers in %s", async (_, elsewhere, place) => {
  const worker = newLine({ redis: elsewhere() });
  worker.getBlockingQueue("orders").subscribe(() => {});
  await connected(WAITING);
  // Nobody else is there, so nothing is wrong with the queue of the worker.
  expect(await diagnosis({ redis: elsewhere() })).toEqual([]);

  const producer = newLine({ redis: server.url, transfer: false });
  await producer.getDelayedQueue("orders").offer(1, 600_000);
  const early = await diagnosis({ redis: server.url });
  expect(inShort(early)).toEqual(["warning no-transfer orders"]);
  expect(early[0]?.what).toContain(
    `1 connection of this library serves a queue of this name in ${place}127.0.0.1:`,
  );
  await producer.getDelayedQueue("orders").offerAt(2, Date.now() - 60_000);
  const late = await diagnosis({ redis: server.url });
  expect(inShort(late)).toEqual(["error overdue orders"]);
  expect(late[0]?.what).toContain(`in ${place}`);
  expect(late[0]?.what).toContain("and these messages are in database 0");
  expect(late[0]?.repair).toContain("with database and keyPrefix");
  // Its name begins like that of the other one.
  await producer.getDelayedQueue("order").offer(1, 600_000);
  const [, other] = await diagnosis({ redis: server.url, queues: ["orders", "order"] });
  expect(other?.what).not.toContain("serves a queue of this name");
  // One who sees the connections of nobody finds what is wrong all the same.
  await server.admin.call(
    "ACL",
    "SETUSER",
    "blind",
    "on",
    ">x",
    "~*",
    "&*",
    "+@all",
    "-client|list",
  );
  const url = new URL(server.url);
  [url.username, url.password] = ["blind", "x"];
  const blind = await diagnosis({ redis: url.href, queues: ["orders"] });
  expect(inShort(blind)).toEqual(["notice clients", "error overdue orders", "notice access"]);
});

it("workers of a reliable queue in another database", async () => {
  newLine({ redis: `${server.url}/1` })
    .getReliableQueue("orders")
    .subscribe(() => {});
  await connected(/name=delayline:blocking:delayline_stream\S* .* db=1/);
  const orders = newLine({ redis: server.url }).getReliableQueue("orders");
  await orders.offer(1, 0);
  await eventually(async () => (await orders.stats()).ready === 1);
  const findings = await diagnosis({ redis: server.url });
  expect(inShort(findings)).toEqual(["error no-consumer orders"]);
  expect(findings[0]?.what).toContain("in database 1");
});

it("a plain consumer of a reliable queue", async () => {
  const orders = newLine({ redis: server.url }).getReliableQueue("orders");
  orders.subscribe(() => {});
  await orders.offer(1, 0);
  await eventually(async () => (await orders.stats()).finished === 1);
  // The consumer watches the LIST, too, and is no plain one.
  await connected(/name=delayline:blocking:orders .* cmd=blmove/);
  expect(await diagnosis({ redis: server.url })).toEqual([]);
  const plain = newLineThatMayFail({ redis: server.url });
  plain.getBlockingQueue("orders").subscribe(() => {});
  await connected(/name=delayline:blocking:orders .* cmd=blpop/);
  const findings = await diagnosis({ redis: server.url });
  expect(inShort(findings)).toEqual(["warning plain-consumer orders"]);
  expect(findings[0]?.what).toMatch(
    /^1 connection takes from the reliable queue .*: 127\.0\.0\.1:\d+$/,
  );
  expect(findings[0]?.repair).toContain('`line.getReliableQueue("orders").subscribe(...)`');
  await plain.close();
  expect(await diagnosis({ redis: server.url })).toEqual([]);
});

it("a consumer that polls a reliable queue as if it was plain", async () => {
  const orders = newLine({ redis: server.url }).getReliableQueue("orders");
  orders.subscribe(() => {});
  await orders.offer(1, 600_000);
  const polled = newLineThatMayFail({ redis: server.url })
    .getBlockingQueue("orders")
    .poll(60_000)
    .catch(() => undefined);
  await connected(/name=delayline:blocking:orders .* cmd=blpop/);
  expect(inShort(await diagnosis({ redis: server.url }))).toEqual([
    "warning plain-consumer orders",
  ]);
  await server.admin.rpush(keys.ready, "1");
  await polled;
});

/** Resolves when the test ends. */
function untilTheEnd(): Promise<void> {
  return new Promise((resolve) => onTestFinished(() => resolve()));
}

/** Makes everything in flight as old as if it had been taken this long ago (ms). */
async function age(milliseconds: number): Promise<void> {
  const rows = await server.admin.xpending(keys.stream, "default", "-", "+", 100);
  for (const [entry, consumer] of rows as [string, string][]) {
    const idle = ["IDLE", milliseconds, "JUSTID"] as const;
    await server.admin.call("XCLAIM", keys.stream, "default", consumer, 0, entry, ...idle);
  }
}

it("three hung handlers, and 17 messages that are ready", async () => {
  const orders = newLineThatMayFail({ redis: server.url }).getReliableQueue("orders");
  const hung = untilTheEnd();
  orders.subscribe(() => hung, { concurrency: 3 });
  // As if they had become ready a minute ago, half a second apart.
  const since = Date.now() - 60_000;
  for (let i = 0; i < 20; i++)
    await server.admin.xadd(
      keys.stream,
      `${since + 500 * i}-0`,
      "a",
      Buffer.alloc(24, i),
      "p",
      "1",
    );
  await eventually(async () => (await orders.stats()).inFlight === 3);
  // They may have begun just now.
  expect(await diagnosis({ redis: server.url })).toEqual([]);
  await age(25_000);
  const findings = await diagnosis({ redis: server.url });
  expect(inShort(findings)).toEqual(["warning stalled orders"]);
  expect(findings[0]?.what).toMatch(
    /^17 messages are ready, and its consumers have taken none for 25 s: they hold 3 that they do not finish \(group default\)$/,
  );
  expect(findings[0]?.repair).toContain("npx delayline list orders --state in-flight");
  // After a while they are known to hang. It is still one finding.
  await age(400_000);
  const later = await diagnosis({ redis: server.url });
  expect(inShort(later)).toEqual(["warning long-in-flight orders"]);
  expect(later[0]?.what).toContain("17 messages are ready");
});

it("a schedule that somebody has paused", async () => {
  const orders = newLine({ redis: server.url }).getReliableQueue<string>("orders");
  orders.subscribe(() => {});
  await orders.schedules.upsert("nightly", { every: 86_400_000, payload: "x" });
  await orders.schedules.upsert("hourly", { every: 3_600_000, payload: "x" });
  expect(await diagnosis({ redis: server.url })).toEqual([]);
  await orders.schedules.pause("nightly");
  const findings = await diagnosis({ redis: server.url });
  expect(inShort(findings)).toEqual(["warning paused-schedule orders"]);
  expect(findings[0]?.what).toBe('schedule "nightly" is paused');
  expect(findings[0]?.repair).toContain("`npx delayline log orders`");
  expect(findings[0]?.repair).toContain("`npx delayline schedules resume orders nightly`");
});

it("a schedule whose runs are dropped since one hangs", async () => {
  const orders = newLineThatMayFail({ redis: server.url }).getReliableQueue<string>("orders");
  const hung = untilTheEnd();
  orders.subscribe(() => hung);
  await orders.schedules.upsert("often", { every: 500, payload: "x", overlap: "skip" });
  await eventually(async () => (await orders.stats()).droppedOverlap > 0);
  const findings = await diagnosis({ redis: server.url });
  // On a slow machine some ticks are late, too.
  expect(inShort(findings)).toContain("notice dropped-runs orders");
  const found = findings.find(({ check }) => check === "dropped-runs");
  expect(found?.what).toMatch(/ of schedule "often" (was|were) dropped, ever, while another/);
});
