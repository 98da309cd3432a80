import type { Redis } from "ioredis";
import { Registry } from "prom-client";
import { expect, it, vi } from "vitest";
import { collectMetrics } from "../../../src/adapters/prometheus/index.ts";
import { diagnose, type Finding } from "../../../src/tools/doctor/diagnose.ts";
import { formatFact, parseFact } from "../../../src/partitions/ring/fact.ts";
import { partitionName } from "../../../src/partitions/ring/ring.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { formatInstant } from "../../../src/tools/view/instants.ts";
import type { FlowOptions, Rate } from "../../../src/index.ts";
import { cli } from "../../helpers/cli.ts";
import { newLine, newLineThatMayFail } from "../../helpers/delayline.ts";
import { diagnosis, inShort } from "../../helpers/diagnosis.ts";
import { eventually } from "../../helpers/eventually.ts";
import { keyspaceOf } from "../../helpers/keyspace.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
import { newRedis } from "../../helpers/redis.ts";
import { useSoundServer } from "../../helpers/sound-server.ts";
import { transferAsRedisson } from "../../helpers/redisson.ts";

// Queues in trouble, on a sound server. No process moves or takes, unless a test says so.

const server = useSoundServer();

const keys = queueKeys("orders");

/** A client that only offers. */
function newProducer() {
  return newLine({ redis: server.url, transfer: false, codec: "string" });
}

function find(findings: readonly Finding[], check: string): Finding | undefined {
  return findings.find((finding) => finding.check === check);
}

it("reports a queue that nobody moves once: as overdue, or as no-transfer while nothing is due yet", async () => {
  const orders = newProducer().getDelayedQueue("orders");
  const since = Date.now() - 3_600_000;
  await orders.offerAt("late", since);
  await orders.offer("later", 600_000);
  const findings = await diagnosis({ redis: server.url });
  expect(inShort(findings)).toEqual(["error overdue orders"]);
  expect(findings[0]?.what).toBe(
    `1 message is overdue, the first since ${formatInstant(since)} (1 h); no process listens to the queue`,
  );
  expect(findings[0]?.repair).toContain("start a process");

  await orders.clear();
  await orders.offer("later", 600_000);
  const [early, ...others] = await diagnosis({ redis: server.url });
  expect(inShort([early as Finding, ...others])).toEqual(["warning no-transfer orders"]);
  expect(early?.what).toContain("1 message waits in it, due at 20");
});

it("reports a name without a queue, and suggests a similar one", async () => {
  await newProducer().getDelayedQueue("orders").offer("x", 600_000);
  const findings = await diagnosis({ redis: server.url, queues: ["ordres"] });
  expect(inShort(findings)).toEqual(["error no-queue ordres"]);
  expect(findings[0]?.what).toContain('there is "orders"');
});

it("reports a paused queue, and not its overdue messages", async () => {
  const orders = newProducer().getDelayedQueue("orders");
  await orders.offerAt("late", Date.now() - 60_000);
  await orders.pause();
  const findings = await diagnosis({ redis: server.url });
  expect(inShort(findings)).toEqual(["warning paused orders"]);
  expect(findings[0]?.what).toContain("1 message is due, the first for 1 min");
  expect(findings[0]?.repair).toContain("npx delayline resume orders");
});

it("reports takers that hear no wake-ups", async () => {
  await server.admin.call("ACL", "SETUSER", "deaf", "on", ">x", "~*", "+@all", "resetchannels");
  const url = new URL(server.url);
  [url.username, url.password] = ["deaf", "x"];
  const line = newLineThatMayFail({ redis: url.href });
  line.getBlockingQueue("orders").subscribe(() => {});
  await newProducer().getDelayedQueue("orders").offer("a", 600_000);
  await eventually(async () =>
    String(await server.admin.client("LIST")).includes("blocking:orders"),
  );
  expect(inShort(await diagnosis({ redis: server.url }))).toEqual(["warning deaf orders"]);
});

it("reports ready messages that nobody takes", async () => {
  const line = newLine({ redis: server.url, codec: "string" });
  await line.getDelayedQueue("orders").offer("later", 600_000);
  await line.getBlockingQueue("orders").putMany(["a", "b"]);
  const findings = await diagnosis({ redis: server.url });
  expect(inShort(findings)).toEqual(["error no-consumer orders"]);
  expect(findings[0]?.what).toContain("2 messages are ready, none was taken");
});

it("reports a group without a live consumer once, with the messages that the dead one held", async () => {
  const line = newLine({ redis: server.url, codec: "string" });
  const orders = line.getReliableQueue("orders");
  await orders.offer("a", 0);
  await orders.offer("b", 0);
  await eventually(async () => (await orders.stats()).ready === 2);
  const dead = "delayline:1:00000000-0000-4000-8000-000000000000";
  await server.admin.xreadgroup("GROUP", "default", dead, "COUNT", 1, "STREAMS", keys.stream, ">");
  await eventually(async () => {
    const [consumer] = (await server.admin.xinfo(
      "CONSUMERS",
      keys.stream,
      "default",
    )) as unknown[][];
    return Number(consumer?.[5]) > 1200;
  });
  const findings = await diagnosis({ redis: server.url });
  expect(inShort(findings)).toEqual(["error no-consumer orders"]);
  expect(findings[0]?.what).toMatch(
    /the group default has no live consumer, for [\d.]+ s; 2 messages wait, 1 of them in flight$/,
  );
  // Without its only group, nobody would read the stream.
  expect(findings[0]?.repair).not.toContain("XGROUP DESTROY");

  // A live consumer should have reclaimed the message.
  await joinGroup();
  const [orphan, ...others] = await diagnosis({ redis: server.url });
  expect(inShort([orphan as Finding, ...others])).toEqual(["warning orphan orders"]);
  expect(orphan?.what).toContain(`1 message is in flight for ${dead}`);

  await server.admin.xgroup("DESTROY", keys.stream, "default");
  expect(inShort(await diagnosis({ redis: server.url }))).toEqual(["error no-consumer orders"]);
});

/** Adds a live consumer to the group, which takes nothing. */
async function joinGroup(): Promise<void> {
  const alive = "delayline:60000:11111111-1111-4111-8111-111111111111";
  await server.admin.xgroup("CREATECONSUMER", keys.stream, "default", alive);
}

it("reports a plain queue with nothing but ready messages, whose processes have ended", async () => {
  const line = newLine({ redis: server.url, codec: "string" });
  const orders = line.getDelayedQueue("orders");
  await orders.offer("a", 0);
  await eventually(async () => (await orders.stats()).ready === 1);
  await line.close();
  expect(inShort(await diagnosis({ redis: server.url }))).toEqual(["error no-consumer orders"]);
  expect((await cli(["queues"], { url: server.url })).stdout).toBe("orders\n");
  expect((await cli(["stats"], { url: server.url })).stdout).toMatch(/\norders +0 +0 +1 /);
  const registry = new Registry();
  await using _ = collectMetrics(newProducer(), { registry, queues: "all" });
  expect(await registry.metrics()).toContain('delayline_ready{queue="orders"} 1');
});

it("reports a message that a live process has had in flight for long, and which process that is", async () => {
  const line = newLine({ redis: server.url, codec: "string" });
  const orders = line.getReliableQueue("orders");
  await orders.offer("a", 0);
  await orders.offer("b", 0);
  const delivery = await orders.take();
  await orders.take();
  expect(inShort(await diagnosis({ redis: server.url }))).toEqual([]);

  // As if its handler had run for six minutes; then its consumer beats.
  const [[entry = "", consumer = ""] = []] = (await server.admin.xpending(
    ...([keys.stream, "default", "-", "+", 1] as const),
  )) as string[][];
  await server.admin.call(
    ...(["XCLAIM", keys.stream, "default", consumer, 0, entry, "IDLE", 360_000, "JUSTID"] as const),
  );
  await delivery.extend(60_000);
  const findings = await diagnosis({ redis: server.url });
  expect(inShort(findings)).toEqual(["warning long-in-flight orders"]);
  const { what, repair } = findings[0] as Finding;
  expect(what).toContain(`in flight for 6 min, in process ${process.pid} on `);
  expect(repair).toContain("list orders --state in-flight");

  const listed = await cli(["list", "orders", "--state", "in-flight"], { url: server.url });
  const [, row = ""] = listed.stdout.split("\n");
  expect(row).toMatch(/^6 min( \d+ s)? ago +/);
  expect(row).toContain(` ${process.pid} `);
  const shown = await cli(["get", "orders", delivery.id], { url: server.url });
  expect(shown.stdout).toMatch(/in flight since .* \(6 min( \d+ s)? ago\)/);
  expect(shown.stdout).toMatch(new RegExp(`pid +${process.pid}\n`));
  const { stdout } = await cli(["stats", "orders"], { url: server.url });
  expect(stdout).toMatch(/oldest in flight +for 6 min/);
});

it("reports messages that a foreign program holds", async () => {
  const line = newLine({ redis: server.url, codec: "string" });
  const orders = line.getReliableQueue("orders");
  await orders.offer("a", 0);
  await eventually(async () => (await orders.stats()).ready === 1);
  await server.admin.xreadgroup(
    "GROUP",
    "default",
    "script",
    "COUNT",
    1,
    "STREAMS",
    keys.stream,
    ">",
  );
  orders.subscribe(() => {});
  await eventually(async () => String(await server.admin.client("LIST")).includes(":blocking:"));
  const findings = await diagnosis({ redis: server.url });
  expect(inShort(findings)).toEqual(["warning orphan orders"]);
  expect(findings[0]?.why).toContain("not a consumer of this library");
});

it("reports dead letters and the quarantine, with numbers and times", async () => {
  const line = newLine({ redis: server.url, codec: "string" });
  const orders = line.getReliableQueue("orders");
  await orders.offer("a", 0);
  await (await orders.take()).reject("enough");
  await server.admin.rpush(keys.quarantine, "?");
  await server.admin.rpush(keys.unreadable, "?", "?");
  const findings = await diagnosis({ redis: server.url });
  expect(inShort(findings)).toContain("warning quarantine orders");
  expect(find(findings, "quarantine")?.what).toContain("3 messages in the quarantine: 1");
  expect(find(findings, "dead-letters")?.what).toMatch(
    /1 dead letter, the first since 20.*the last \d+ m?s ago/,
  );
});

it("prints repairs as commands for the Redis that was examined", async () => {
  const orders = newLine({ redis: `${server.url}/1`, codec: "string" }).getReliableQueue("it's");
  await orders.offer("a", 0);
  await (await orders.take()).reject("enough");
  await orders.pause();
  const run = await cli(["doctor", "it's", "--redis", `${server.url}/1`, "--json"]);
  const repairs = run.json.map(({ repair }) => String(repair)).join("\n");
  for (const command of ["resume", "dead reasons", "dead redrive"]) {
    expect(repairs).toContain(
      String.raw`npx delayline ${command} 'it'\''s' --redis ${server.url}/1`,
    );
  }
  // Each command stands whole on a printed line of its own.
  const args = ["doctor", "it's", "--redis", `${server.url}/1`];
  const { code, stdout, stderr } = await cli(args, { url: "redis://127.0.0.1:1" });
  expect([code, stderr]).toEqual([0, "Found 2 warnings.\n"]);
  expect(stdout.split("\n")).toContain(
    String.raw`            npx delayline dead redrive 'it'\''s' --redis ${server.url}/1`,
  );
});

it("reports messages that have been ready for long once: for lack of a consumer, or as a backlog", async () => {
  const since = Date.now() - 600_000;
  const address = Buffer.alloc(24);
  await server.admin.xadd(keys.stream, `${since}-0`, "a", address, "p", "payload");
  await server.admin.xgroup("CREATE", keys.stream, "default", "0");
  const findings = await diagnosis({ redis: server.url });
  expect(inShort(findings)).toEqual(["error no-consumer orders"]);
  expect(findings[0]?.what).toContain(
    "1 message waits, 0 of them in flight, the oldest ready for 10",
  );

  await joinGroup();
  const [backlog, ...others] = await diagnosis({ redis: server.url });
  expect(inShort([backlog as Finding, ...others])).toEqual(["warning backlog orders"]);
  expect(backlog?.what).toContain("1 message is ready, the oldest for 10 min");
});

it("reports an untidied insertion order, and business keys that point to no message", async () => {
  const orders = newProducer().getDelayedQueue("orders");
  await orders.offer("a", 600_000, { key: "a" });
  await server.admin.rpush(keys.order, ...Array.from({ length: 2100 }, (_, i) => `element ${i}`));
  const lost = Buffer.alloc(25);
  lost.writeBigUInt64BE(BigInt(Date.now() + 300_000));
  await server.admin.hset(keys.businessKeys, "lost", lost, "long".repeat(100), "no address");
  const findings = await diagnosis({ redis: server.url });
  expect(inShort(findings)).toEqual([
    "warning no-transfer orders",
    "warning insertion-order orders",
    "warning index orders",
    "warning early orders",
  ]);
  expect(find(findings, "insertion-order")?.what).toContain("2,101 elements for 1 delayed message");
  expect(find(findings, "index")?.what).toContain("2 of 3 sampled entries");
});

it("reports a Redisson whose clock is ahead", async () => {
  const orders = newProducer().getDelayedQueue("orders");
  await orders.offer("early", 600_000);
  // The access finding comes between the two looks.
  const url = await newUser("-client|kill");
  const findings: Finding[] = [];
  for await (const finding of diagnose({ redis: url })) {
    findings.push(finding);
    if (finding.check !== "access") continue;
    const clock = vi.spyOn(Date, "now").mockReturnValue(Date.now() + 660_000);
    const moved = transferAsRedisson(server.admin, "orders");
    clock.mockRestore();
    await moved;
  }
  expect(inShort(findings)).toContain("error early orders");
  expect(find(findings, "early")?.what).toMatch(/became ready 9 min( \d+ s)? before it was due/);
});

async function newUser(...rules: string[]): Promise<string> {
  await server.admin.call("ACL", "SETUSER", "limited", "on", ">x", "~*", "&*", "+@all", ...rules);
  const url = new URL(server.url);
  [url.username, url.password] = ["limited", "x"];
  return url.href;
}

it("reports a key used by another program, and goes on with other queues", async () => {
  const line = newProducer();
  await line.getDelayedQueue("orders").offer("a", 600_000);
  await line.getDelayedQueue("zebras").offer("a", 600_000);
  await server.admin.set("orders", "a string");
  // Nor can a queue of this name exist.
  await server.admin.set("delayline_stream:{}x", "a string");
  const findings = await diagnosis({ redis: server.url });
  expect(inShort(findings).toSorted()).toEqual([
    "error key-type orders",
    "error refused {}x",
    "warning no-transfer zebras",
  ]);
  expect(find(findings, "key-type")?.what).toContain(
    "the key orders holds a string; the queue needs a list",
  );
});

/** A queue of two partitions that this process moves. */
async function newPartitioned() {
  const line = newLine({ redis: server.url, codec: "string" });
  const orders = line.getDelayedQueue("orders", { partitions: 2 });
  await orders.offerMany(
    Array.from({ length: 8 }, (_, i) => ({ payload: `${i}`, delay: 600_000 })),
  );
  return line;
}

it("reports messages in the ordinary queue beside the partitions", async () => {
  await newPartitioned();
  const { timeouts } = keys;
  const first = queueKeys(partitionName("orders", 0)).timeouts;
  const [member = ""] = await server.admin.zrangeBuffer(first, "0", "0");
  await server.admin.zadd(timeouts, String(Date.now() + 600_000), member);
  const findings = await diagnosis({ redis: server.url });
  expect(inShort(findings)).toEqual(["warning partitions orders"]);
  expect(findings[0]?.what).toContain("1 message in the ordinary queue beside the 2 partitions");
});

it("reports a batch that has left the ordinary queue, and has not arrived", async () => {
  await newPartitioned();
  await server.admin.hset(keys.journal, "last", "7", "rows", "some");
  const findings = await diagnosis({ redis: server.url });
  expect(inShort(findings)).toEqual(["warning partitions orders"]);
  expect(findings[0]?.what).toContain("a batch that a process took out");
});

function factKey(partition: number): string {
  return queueKeys(partitionName("orders", partition)).partitions;
}

/** A change from 2 to 3 partitions whose process has died, with 8 messages that have business keys. */
async function newDeadChange(state: "moving" | "holding" = "moving"): Promise<void> {
  const line = newLine({ redis: server.url, codec: "string" });
  const orders = line.getDelayedQueue("orders", { partitions: 2 });
  await orders.offerMany(
    Array.from({ length: 8 }, (_, i) => ({ payload: `${i}`, delay: 600_000, key: `key ${i}` })),
  );
  // A process that has the queue open would finish the change.
  await line.close();
  const fact = parseFact((await server.admin.get(factKey(0))) ?? "");
  if (fact === undefined) throw new Error("the queue has partitions");
  const moving = formatFact({ ...fact, epoch: fact.epoch + 1, to: 3, state });
  for (const partition of [0, 1, 2]) await server.admin.set(factKey(partition), moving);
}

it("says since when a change of the partitions stands still, moves nothing, and the repair ends it", async () => {
  await newDeadChange();
  const since = Date.now() - 7_200_000;
  const { journal } = queueKeys(partitionName("orders", 0));
  await server.admin.hset(journal, "began", since);
  const before = await keyspaceOf(server.admin);
  for (const _ of [1, 2]) {
    const findings = await diagnosis({ redis: server.url });
    const finding = find(findings, "partitions");
    expect(finding?.level).toBe("warning");
    expect(finding?.what).toBe(
      `the change of the number of partitions from 2 to 3 (moving) stands still since ${formatInstant(since)} (2 h): no process works on it`,
    );
    expect(finding?.repair).toContain("`npx delayline partitions orders --finish`");
  }
  expect(await keyspaceOf(server.admin)).toEqual(before);

  const run = await cli(["partitions", "orders", "--finish", "--yes"], { url: server.url });
  expect(run).toMatchObject({ code: 0 });
  expect(run.stdout).toMatch(/^Queue "orders" has 3 partitions; \d messages? migrated\.\n$/);
  expect(inShort(await diagnosis({ redis: server.url }))).toEqual(["warning no-transfer orders"]);
});

it("says that nothing becomes ready while a change of an exclusive queue stands still", async () => {
  await newDeadChange("holding");
  const { journal } = queueKeys(partitionName("orders", 0));
  await server.admin.hset(journal, "last", (Date.now() - 60_000) * 1000);
  const finding = find(await diagnosis({ redis: server.url }), "partitions");
  expect(finding?.level).toBe("error");
  expect(finding?.what).toMatch(/\(holding\) stands still since 20[^()]+ \(1 min/);
  expect(finding?.why).toContain("nothing becomes ready");
});

it("lets a change go on that a process works on", async () => {
  const line = newLine({ redis: server.url, codec: "string" });
  const queue = line.getReliableQueue("orders", { partitions: 2 });
  for (let i = 0; i < 8; i++) await queue.offer(`${i}`, 0);
  const held = [];
  for (let i = 0; i < 8; i++) held.push(await queue.take());
  const changing = line.setPartitions("orders", 1);
  await eventually(async () => (await server.admin.get(factKey(0)))?.includes("moving"));
  const finding = find(await diagnosis({ redis: server.url }), "partitions");
  expect(finding?.what).toMatch(/from 2 to 1 \(moving\) is under way/);
  expect(finding?.level).toBe("notice");
  for (const delivery of held) await delivery.ack();
  await changing;
  expect(find(await diagnosis({ redis: server.url }), "partitions")).toBeUndefined();
});

it("reports a list of servers that is too short or in another order", async () => {
  const other = await startOwnServer({ appendOnly: true });
  const both = [server.url, other.url];
  const line = newLine({ redis: both, codec: "string" });
  await line.getDelayedQueue("orders", { partitions: 2 }).offer("a", 600_000);
  expect(await diagnosis({ redis: both })).toEqual([]);
  const short = await diagnosis({ redis: server.url });
  expect(inShort(short)).toEqual(["error partitions orders"]);
  expect(short[0]?.what).toContain("its partitions are on 2 servers, and 1 was given");
  const turned = await diagnosis({ redis: both.toReversed() });
  expect(inShort(turned)).toEqual(["error partitions orders"]);
  expect(turned[0]?.what).toContain("partition 0 is on server 1 of the list");
});

it("reports movers that do not ask the conditions of messages", async () => {
  const name = "orders";
  const line = newLine({ redis: server.url });
  const orders = line.getDelayedQueue(name);
  await orders.offer("a", 600_000, { deliverWithin: 1000 });
  await eventually(async () => ((await orders.stats()).listeners ?? 0) > 0);
  expect(inShort(await diagnosis({ redis: server.url }))).toEqual([]);
  const redis = newRedis(server.url);
  await redis.set(keys.mover, "0b6f1a52-7e0e-4c3d-9a5e-5f0f3f1f8f0e", "EX", 3600);
  const [older] = await diagnosis({ redis: server.url });
  expect(older).toMatchObject({ level: "warning", check: "unasked", queue: name });
  expect(older?.what).toContain("a process of an older release moved its messages last");
  await redis.del(keys.mover);
  // As a Redisson would.
  const java = newRedis(server.url);
  await java.subscribe(keys.channel);
  const [other] = await diagnosis({ redis: server.url });
  expect(other).toMatchObject({ check: "unasked" });
  expect(other?.what).toContain("a program other than this library");
  await orders.clear();
  expect(inShort(await diagnosis({ redis: server.url }))).toEqual([]);
});

it("sees the conditions of messages that wait for their turn", async () => {
  const orders = newLine({ redis: server.url }).getDelayedQueue("orders");
  await orders.flow.set({ rate: { limit: 1, per: 3_600_000 }, lane: {} });
  await orders.offer("a", 0, { lane: "a" });
  await orders.offer("b", 0, { lane: "a", deliverWithin: 3_600_000 });
  await eventually(async () => (await orders.stats()).waiting === 1);
  const redis = newRedis(server.url);
  expect(await redis.zcard(keys.timeouts)).toBe(0);
  await redis.set(keys.mover, "0b6f1a52-7e0e-4c3d-9a5e-5f0f3f1f8f0e", "EX", 3600);
  expect(inShort(await diagnosis({ redis: server.url }))).toContain("warning unasked orders");
});

it("reports movers that do not keep the rate of a queue", async () => {
  const line = newLine({ redis: server.url });
  const orders = line.getDelayedQueue("orders");
  await orders.flow.set({ rate: { limit: 10, per: 1000 } });
  await eventually(async () => ((await orders.stats()).listeners ?? 0) > 0);
  await orders.offer("a", 0);
  await eventually(async () => (await orders.stats()).ready === 1);
  expect(inShort(await diagnosis({ redis: server.url }))).not.toContain("warning unpaced orders");
  const redis = newRedis(server.url);
  // It asks conditions, but knows no rates.
  await redis.set(keys.mover, "asks:0b6f1a52-7e0e-4c3d-9a5e-5f0f3f1f8f0e@1", "EX", 3600);
  const findings = await diagnosis({ redis: server.url });
  expect(findings.find(({ check }) => check === "unpaced")).toMatchObject({
    level: "warning",
    queue: "orders",
    what: expect.stringContaining("a process of an older release moved its messages last"),
  });
  await orders.flow.clear();
  expect(inShort(await diagnosis({ redis: server.url }))).not.toContain("warning unpaced orders");
});

it.each([
  ["a rate", (rate: Rate): FlowOptions => ({ rate })],
  ["lanes with rates", (rate: Rate): FlowOptions => ({ lane: { rate } })],
])(
  "says nothing of messages that wait for their turn, by %s, until nobody moves them any more",
  async (_, flowWith) => {
    const line = newLine({ redis: server.url });
    const orders = line.getDelayedQueue("orders");
    await orders.flow.set(flowWith({ limit: 1, per: 3_600_000, burst: 1 }));
    const since = Date.now() - 60_000;
    for (const payload of ["a", "b", "c"]) {
      await orders.offerAt(payload, since, { key: payload, lane: "one" });
    }
    await eventually(async () => {
      const { ready, waiting, overdue } = await orders.stats();
      expect({ ready, waiting, overdue }).toEqual({ ready: 1, waiting: 2, overdue: 0 });
    });
    expect(await line.getBlockingQueue("orders").poll()).toBe("a");
    expect(inShort(await diagnosis({ redis: server.url }))).toEqual([]);
    await line.close();
    const redis = newRedis(server.url);
    await turnBack(redis);
    const findings = await diagnosis({ redis: server.url });
    expect(inShort(findings)).toEqual(["error overdue orders"]);
    expect(findings[0]?.what).toMatch(/^2 messages are overdue, the first since .* no process/);
  },
);

/** As if the messages could have had their turn a minute ago. */
async function turnBack(redis: Redis): Promise<void> {
  const before = Date.now() - 60_000;
  await redis.hset(keys.flow, { arrival: (before - 3_600_000) * 1000, look: before });
}

it("reports messages that are dropped as late though a process moves them, and not those of an outage", async () => {
  const name = "orders";
  const line = newLine({ redis: server.url, anyTime: true });
  const orders = line.getDelayedQueue(name);
  await eventually(async () => ((await orders.stats()).listeners ?? 0) > 0);
  // As many as an outage leaves behind.
  await newRedis(server.url).hset(keys.dropped, "deliverWithin", 40);
  expect(inShort(await diagnosis({ redis: server.url }))).toEqual([]);

  const over = new AbortController();
  const offering = (async () => {
    // Each is due at once, and late by more than nothing when it is moved.
    while (!over.signal.aborted) await orders.offerAt("a", Date.now() - 100, { deliverWithin: 0 });
  })();
  await eventually(() => orders.counters.dropped > 0);
  const [found] = await diagnosis({ redis: server.url });
  over.abort();
  await offering;
  expect(found).toMatchObject({ level: "warning", check: "dropped-late", queue: name });
  expect(found?.what).toMatch(
    /^\d+ messages? (was|were) dropped in the last half second, .* so far$/,
  );
});

it("says how far a full record of handled messages reaches back", async () => {
  const redis = newRedis(server.url);
  const orders = newLine({ redis: server.url }).getReliableQueue("orders", {
    keepHandled: 86_400_000,
  });
  // As many as it holds, in the last three hours.
  const since = Date.now() - 10_800_000;
  const add = `for i = 1, 5000 do redis.call("XADD", KEYS[1], ARGV[1] .. "-" .. i, "a", "") end`;
  for (let page = 0; page < 20; page++) await redis.eval(add, 1, keys.handled, since + page);
  await orders.offer("a", 0);
  await (await orders.take()).ack();
  expect((await orders.stats()).remembered).toBe(100_001);
  const found = await diagnosis({ redis: server.url });
  expect(inShort(found)).toEqual(["notice remembered orders"]);
  expect(found[0]?.what).toContain("only, 3 h");
  await redis.xtrim(keys.handled, "MAXLEN", 99_999);
  expect(inShort(await diagnosis({ redis: server.url }))).toEqual([]);
});

it("tells of schedules that nobody plans, of missed ticks, and of planners with different time zones", async () => {
  // Its process plans nothing; something else is subscribed, as if it moved the messages.
  const orders = newProducer().getReliableQueue<string>("orders");
  await newRedis(server.url).subscribe(keys.channel);
  const findings = async () =>
    (await diagnosis({ redis: server.url })).filter(({ check }) => check !== "unasked");
  const daily = { cron: "0 9 * * *", timeZone: "Europe/Berlin" };
  await orders.schedules.upsert("value", { ...daily, payload: "x" });
  await orders.schedules.upsert("code", { ...daily, payload: ({ at }) => at.toISOString() });
  await orders.schedules.upsert("well", { ...daily, payload: "x" });
  expect(inShort(await findings())).toEqual([]);
  const redis = newRedis(server.url);
  /** Changes the record of a schedule, and when it is to be planned. */
  const change = async (name: string, from: RegExp, to: string, planAt?: number) => {
    const record = (await redis.hgetall(keys.schedules))[name] ?? "";
    expect(record).toMatch(from);
    await redis.hset(keys.schedules, name, record.replace(from, to));
    if (planAt !== undefined) await redis.zadd(keys.planning, planAt, name);
  };
  await change("well", /"missed":0/, '"missed":3');
  await change("well", /"tzdata":"[^"]*"/, '"tzdata":"1999z"');
  const quiet = await findings();
  expect(inShort(quiet)).toEqual(["notice missed-ticks orders", "warning tzdata orders"]);
  expect(quiet[0]?.what).toBe('3 ticks of schedule "well" were missed, ever');
  expect(quiet[1]?.what).toContain('1999z (schedule "well")');
  await change("value", /"missed":0/, '"missed":5');
  const [worst] = await findings();
  expect(worst?.what).toBe('8 ticks of 2 schedules ("value" 5, "well" 3) were missed, ever');
  const late = Date.now() - 180_000;
  for (const name of ["value", "code"]) {
    await change(name, /"planAt":\d+/, `"planAt":${late}`, late);
  }
  const stuck = await findings();
  const found = stuck.filter(({ check }) => check === "unplanned");
  expect(found.map(({ level }) => level)).toEqual(["error", "error"]);
  expect(found[0]?.what).toContain(
    'schedule "code" should have been planned 3 min ago, and needs code',
  );
  expect(found[0]?.repair).toContain("npx delayline schedules remove orders code");
  expect(found[1]?.what).toContain('schedule "value" should have been planned 3 min ago');
  expect(found[1]?.repair).toContain("npm install croner");
});
