import { expect, it, vi } from "vitest";
import { diagnose, type Finding } from "../../../src/doctor/diagnose.ts";
import { formatFact, parseFact } from "../../../src/partitions/ring/fact.ts";
import { partitionName } from "../../../src/partitions/ring/ring.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { newLine, newLineThatMayFail } from "../../helpers/delayline.ts";
import { diagnosis, inShort } from "../../helpers/diagnosis.ts";
import { eventually } from "../../helpers/eventually.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
import { useSoundServer } from "../../helpers/sound-server.ts";
import { transferAsRedisson } from "../../helpers/redisson.ts";

// Queues in trouble, on a server that is in order. Nobody moves or takes, but where a test says so.

const server = useSoundServer();

const keys = queueKeys("orders");

/** A client that only offers. */
function newProducer() {
  return newLine({ redis: server.url, transfer: false, codec: "string" });
}

function find(findings: readonly Finding[], check: string): Finding | undefined {
  return findings.find((finding) => finding.check === check);
}

it("finds what is overdue since when, and that nobody moves", async () => {
  const orders = newProducer().getDelayedQueue("orders");
  const since = Date.now() - 3_600_000;
  await orders.offerAt("late", since);
  await orders.offer("later", 600_000);
  const findings = await diagnosis({ redis: server.url });
  expect(inShort(findings)).toEqual(["error overdue orders", "error no-transfer orders"]);
  expect(findings[0]?.what).toContain(
    `1 message is overdue, the first since ${new Date(since).toISOString()} (1 h)`,
  );
  expect(findings[1]?.what).toContain("2 messages wait in it");

  // Not due yet: time to start somebody.
  await orders.clear();
  await orders.offer("later", 600_000);
  expect(inShort(await diagnosis({ redis: server.url }))).toEqual(["warning no-transfer orders"]);
});

it("says that there is no queue of a name, and what is there", async () => {
  await newProducer().getDelayedQueue("orders").offer("x", 600_000);
  const findings = await diagnosis({ redis: server.url, queues: ["ordres"] });
  expect(inShort(findings)).toEqual(["error no-queue ordres"]);
  expect(findings[0]?.what).toContain('there is "orders"');
});

it("finds a paused queue, and does not blame those who obey", async () => {
  const orders = newProducer().getDelayedQueue("orders");
  await orders.offerAt("late", Date.now() - 60_000);
  await orders.pause();
  const findings = await diagnosis({ redis: server.url });
  expect(inShort(findings)).toEqual(["warning paused orders"]);
  expect(findings[0]?.what).toContain("1 message is due, the first for 1 min");
  expect(findings[0]?.repair).toContain("redis-cli DEL 'delayline_paused:{orders}'");
});

it("finds takers that hear no wake-ups", async () => {
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

it("finds ready messages that nobody takes, unless somebody does", async () => {
  const line = newLine({ redis: server.url, codec: "string" });
  await line.getDelayedQueue("orders").offer("later", 600_000);
  await line.getBlockingQueue("orders").putMany(["a", "b"]);
  const findings = await diagnosis({ redis: server.url });
  expect(inShort(findings)).toEqual(["warning no-consumer orders"]);
  expect(findings[0]?.what).toContain("2 messages are ready, none was taken");
});

it("finds a group without consumers, and what the dead have in hand", async () => {
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
  expect(inShort(findings)).toEqual(["warning orphan orders", "error no-consumer orders"]);
  expect(findings[1]?.what).toContain("the group default has no consumer that is alive");
  expect(findings[0]?.what).toContain(`1 message is in flight for ${dead}`);

  await server.admin.xgroup("DESTROY", keys.stream, "default");
  expect(inShort(await diagnosis({ redis: server.url }))).toEqual(["error no-consumer orders"]);
});

it("finds a program that reads the stream, and is no consumer of ours", async () => {
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
  expect(findings[0]?.why).toContain("no consumer of this library");
});

it("finds dead letters and the quarantine, and since when", async () => {
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

it("finds messages that have been ready for long", async () => {
  const since = Date.now() - 600_000;
  const address = Buffer.alloc(24);
  await server.admin.xadd(keys.stream, `${since}-0`, "a", address, "p", "payload");
  await server.admin.xgroup("CREATE", keys.stream, "default", "0");
  const findings = await diagnosis({ redis: server.url });
  expect(inShort(findings)).toEqual(["warning backlog orders", "error no-consumer orders"]);
  expect(findings[0]?.what).toContain("1 message is ready, the oldest for 10 min");
});

it("finds an insertion order that nobody tidies, and keys that lead nowhere", async () => {
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
  expect(find(findings, "insertion-order")?.what).toContain("2101 elements for 1 delayed message");
  expect(find(findings, "index")?.what).toContain("2 of 3 entries");
});

it("finds a Redisson that moves by a clock that is ahead", async () => {
  const orders = newProducer().getDelayedQueue("orders");
  await orders.offer("early", 600_000);
  // So that there is something to hear of between the first look and the second.
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
  expect(find(findings, "early")?.what).toMatch(/became ready 9 min before it was due/);
});

async function newUser(...rules: string[]): Promise<string> {
  await server.admin.call("ACL", "SETUSER", "limited", "on", ">x", "~*", "&*", "+@all", ...rules);
  const url = new URL(server.url);
  [url.username, url.password] = ["limited", "x"];
  return url.href;
}

it("finds a key that another program uses, and goes on with other queues", async () => {
  const line = newProducer();
  await line.getDelayedQueue("orders").offer("a", 600_000);
  await line.getDelayedQueue("zebras").offer("a", 600_000);
  await server.admin.set("orders", "a string");
  // Nor can there be a queue of this name.
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

/** A queue of two partitions that somebody moves. */
async function newPartitioned() {
  const line = newLine({ redis: server.url, codec: "string" });
  const orders = line.getDelayedQueue("orders", { partitions: 2 });
  await orders.offerMany(
    Array.from({ length: 8 }, (_, i) => ({ payload: `${i}`, delay: 600_000 })),
  );
  return line;
}

it("finds messages in the ordinary queue beside the partitions", async () => {
  await newPartitioned();
  const { timeouts } = keys;
  const first = queueKeys(partitionName("orders", 0)).timeouts;
  const [member = ""] = await server.admin.zrangeBuffer(first, "0", "0");
  await server.admin.zadd(timeouts, String(Date.now() + 600_000), member);
  const findings = await diagnosis({ redis: server.url });
  expect(inShort(findings)).toEqual(["warning partitions orders"]);
  expect(findings[0]?.what).toContain("1 message in the ordinary queue beside the 2 partitions");
});

function factKey(partition: number): string {
  return queueKeys(partitionName("orders", partition)).partitions;
}

it("finds a change of the number of partitions that nobody goes on with", async () => {
  await newPartitioned();
  const fact = parseFact((await server.admin.get(factKey(0))) ?? "");
  if (fact === undefined) throw new Error("the queue has partitions");
  const moving = formatFact({ ...fact, epoch: fact.epoch + 1, to: 3, state: "moving" });
  for (const partition of [0, 1, 2]) await server.admin.set(factKey(partition), moving);
  const findings = await diagnosis({ redis: server.url });
  expect(find(findings, "partitions")?.what).toContain("from 2 to 3 (moving), and no batch");
  expect(find(findings, "partitions")?.level).toBe("warning");
  expect(find(findings, "partitions")?.repair).toContain('line.setPartitions("orders", 3)');
});

it("finds a list of servers that is too short, or in another order", async () => {
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
