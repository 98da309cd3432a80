import { expect, it } from "vitest";
import { queueKeys } from "../../../src/queue/keys.ts";
import { brokenQueuesOn } from "../../helpers/broken-queues.ts";
import { newLine, newLineThatMayFail } from "../../helpers/delayline.ts";
import { inShort } from "../../helpers/diagnosis.ts";
import { eventually } from "../../helpers/eventually.ts";
import { doctor, onlyOf, pasteAll } from "../../helpers/pasting.ts";
import { useSoundServer } from "../../helpers/sound-server.ts";

// Each test breaks a queue on a sound server, runs the doctor, which changes nothing in Redis, does what it says, and
// runs it again.

const server = useSoundServer();
const keys = queueKeys("orders");
const HOUR = 3_600_000;

const { examined, expectSound, startWorker, newProducer } = brokenQueuesOn(server);

it("nobody transfers or takes: one finding, and a worker repairs it", async () => {
  const orders = newProducer().getDelayedQueue("orders");
  await orders.offerAt("late", Date.now() - 60_000);
  await newProducer().getBlockingQueue("orders").putMany(["a", "b"]);
  const findings = await examined();
  expect(inShort(findings)).toEqual(["error overdue orders"]);
  expect(findings[0]?.what).toContain("no process listens to the queue; 2 messages are ready");
  expect(findings[0]?.repair).toContain(
    "start a process that opens the queue, such as your worker",
  );
  startWorker();
  await eventually(async () => (await server.admin.llen("orders")) === 0);
  await expectSound();
});

it("a reliable queue that grows without a consumer", async () => {
  const mover = newLine({ redis: server.url, codec: "string" });
  const orders = mover.getReliableQueue("orders");
  for (let i = 0; i < 5; i++) await orders.offer(`${i}`, 0);
  await eventually(async () => (await orders.stats()).ready === 5);
  const findings = await examined();
  expect(inShort(findings)).toEqual(["error no-consumer orders"]);
  expect(findings[0]?.what).toContain("the group default has no live consumer");
  expect(findings[0]?.repair).toContain("start a consumer of the group");
  orders.subscribe(() => {});
  await eventually(
    async () => (await orders.stats()).ready + (await orders.stats()).inFlight === 0,
  );
  await expectSound();
});

it("a group that nobody reads any more, beside one that works", async () => {
  const line = newLine({ redis: server.url, codec: "string" });
  const orders = line.getReliableQueue("orders");
  const seen: unknown[] = [];
  orders.subscribe((payload) => void seen.push(payload));
  // The other group was there once.
  await orders.offer("first", 0);
  await eventually(async () => (await orders.stats()).finished === 1);
  await server.admin.xgroup("CREATE", keys.stream, "old reports", "0");
  for (let i = 0; i < 5; i++) await orders.offer(`${i}`, 0);
  await eventually(() => seen.length === 6);
  await eventually(async () => (await orders.stats()).inFlight === 0);
  const findings = await examined();
  expect(inShort(findings)).toEqual(["error no-consumer orders"]);
  expect(findings[0]?.what).toContain(
    "the group old reports has no live consumer; 5 messages wait",
  );
  await pasteAll(onlyOf(findings, "no-consumer"));
  await expectSound();
});

it("messages that a foreign program has taken", async () => {
  const line = newLine({ redis: server.url, codec: "string" });
  const orders = line.getReliableQueue("orders", { leaseTimeout: 1000 });
  await orders.offer("a", 0);
  await eventually(async () => (await orders.stats()).ready === 1);
  const read = ["GROUP", "default", "script", "COUNT", 1, "STREAMS", keys.stream, ">"] as const;
  await server.admin.xreadgroup(...read);
  const live = "delayline:60000:5:11111111-1111-4111-8111-111111111111";
  await server.admin.xgroup("CREATECONSUMER", keys.stream, "default", live);
  const findings = await examined();
  expect(inShort(findings)).toEqual(["warning orphan orders"]);
  expect(findings[0]?.what).toContain("1 message is in flight for script (group default)");
  await pasteAll(onlyOf(findings, "orphan"));
  // As the doctor says, a live consumer reclaims it.
  const seen: string[] = [];
  orders.subscribe((payload) => void seen.push(String(payload)));
  await eventually(() => seen.includes("a"));
  await eventually(async () => (await orders.stats()).inFlight === 0);
  await expectSound();
});

it("a key of the queue that another program has taken", async () => {
  await newProducer().getDelayedQueue("orders").offer("a", HOUR);
  await server.admin.set("orders", "a string");
  const findings = await examined();
  expect(onlyOf(findings, "key-type").what).toContain("the key orders holds a string");
  await pasteAll(onlyOf(findings, "key-type"));
  startWorker();
  await eventually(async () => (await doctor(server.url)).findings.length === 0);
});

it("a process that uses the same queue under the name with braces", async () => {
  await newProducer().getDelayedQueue("orders").offer("a", HOUR);
  const stranger = newProducer();
  await stranger.getBlockingQueue("{orders}").putMany(["b", "c"]);
  const findings = await examined();
  expect(onlyOf(findings, "other-name").what).toBe(
    'the LIST {orders} holds 2 elements: the ready messages of queue "{orders}", which has all other keys in common with this one',
  );
  await stranger.close();
  await pasteAll(onlyOf(findings, "other-name"));
  const worker = newLine({ redis: server.url, codec: "string" }).getBlockingQueue("orders");
  expect([await worker.take(), await worker.take()]).toEqual(["b", "c"]);
  await expectSound();
});

it("takers whose user may not subscribe", async () => {
  await server.admin.call("ACL", "SETUSER", "deaf", "on", ">x", "~*", "+@all", "resetchannels");
  const url = new URL(server.url);
  [url.username, url.password] = ["deaf", "x"];
  const line = newLineThatMayFail({ redis: url.href });
  line.getBlockingQueue("orders").subscribe(() => {});
  await newProducer().getDelayedQueue("orders").offer("a", HOUR);
  const isWaiting = async () =>
    String(await server.admin.client("LIST")).includes("blocking:orders");
  await eventually(isWaiting);
  const findings = await examined();
  expect(inShort(findings)).toEqual(["warning deaf orders"]);
  await pasteAll(onlyOf(findings, "deaf"));
  await eventually(async () => (await doctor(server.url)).findings.length === 0);
});
