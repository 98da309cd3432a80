import { expect, it } from "vitest";
import { formatFact, parseFact } from "../../../src/partitions/ring/fact.ts";
import { partitionName } from "../../../src/partitions/ring/ring.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { brokenQueuesOn } from "../../helpers/broken-queues.ts";
import { newLine } from "../../helpers/delayline.ts";
import { inShort } from "../../helpers/diagnosis.ts";
import { eventually } from "../../helpers/eventually.ts";
import { commandsOf, doctor, onlyOf, pasteAll } from "../../helpers/pasting.ts";
import { useSoundServer } from "../../helpers/sound-server.ts";

// As broken-queues.test.ts, for repairs by `npx delayline`, which starts a process.

const server = useSoundServer();
const keys = queueKeys("orders");
const HOUR = 3_600_000;

const { examined, expectSound, startWorker, newProducer } = brokenQueuesOn(server);

it("a pause that was forgotten", async () => {
  startWorker();
  const orders = newProducer().getDelayedQueue("orders");
  await orders.offer("a", HOUR);
  await orders.pause();
  const findings = await examined();
  expect(inShort(findings)).toEqual(["warning paused orders"]);
  await pasteAll(onlyOf(findings, "paused"));
  await expectSound();
});

/** Where the number of partitions is noted beside a partition. */
function factAt(partition: number): string {
  return queueKeys(partitionName("orders", partition)).partitions;
}

it("a change of the partitions whose process has died", async () => {
  const line = newLine({ redis: server.url, codec: "string" });
  const orders = line.getDelayedQueue("orders", { partitions: 2 });
  const messages = Array.from({ length: 40 }, (_, i) => ({
    payload: `${i}`,
    delay: HOUR,
    key: `key ${i}`,
  }));
  await orders.offerMany(messages);
  // A process that has the queue open would finish the change.
  await line.close();
  const fact = parseFact((await server.admin.get(factAt(0))) ?? "");
  if (fact === undefined) throw new Error("the queue has partitions");
  const moving = formatFact({ ...fact, epoch: fact.epoch + 1, to: 5, state: "moving" });
  for (const partition of [0, 1, 2, 3, 4]) await server.admin.set(factAt(partition), moving);

  const findings = await examined();
  expect(onlyOf(findings, "partitions").what).toContain("from 2 to 5 (moving) stands still");
  await pasteAll(onlyOf(findings, "partitions"));
  newLine({ redis: server.url, codec: "string" }).getDelayedQueue("orders", { partitions: 5 });
  await eventually(async () => (await doctor(server.url)).findings.length === 0);
});

it("unreadable messages, some of an unknown layout", async () => {
  startWorker();
  await newProducer().getDelayedQueue("orders").offer("a", HOUR);
  await server.admin.rpush(keys.quarantine, "text");
  const findings = await examined();
  expect(inShort(findings)).toEqual(["warning quarantine orders"]);
  expect(commandsOf(findings[0]!).join()).not.toContain("remove");
  await pasteAll(onlyOf(findings, "quarantine"));
  await eventually(async () => (await server.admin.llen("orders")) === 0);
  await expectSound();

  await server.admin.rpush(keys.unreadable, "?", "?");
  const unknown = await examined();
  expect(inShort(unknown)).toEqual(["warning quarantine orders"]);
  expect(unknown[0]?.what).toContain("2 of unknown layout");
  expect(commandsOf(unknown[0]!).join()).not.toContain("requeue");
  await pasteAll(onlyOf(unknown, "quarantine"));
  await expectSound();
});

it("dead letters", async () => {
  const line = newLine({ redis: server.url, codec: "string" });
  const orders = line.getReliableQueue("orders");
  await orders.offer("a", 0);
  await (await orders.take()).reject("enough");
  const findings = await examined();
  expect(inShort(findings)).toEqual(["warning dead-letters orders"]);
  orders.subscribe(() => {});
  await pasteAll(onlyOf(findings, "dead-letters"));
  await eventually(async () => (await orders.stats()).dead === 0);
  await eventually(async () => (await orders.stats()).inFlight === 0);
  await expectSound();
});

it("two hundred queues with the same trouble are one finding, and one loop repairs them", async () => {
  const line = newProducer();
  for (let i = 0; i < 200; i++) await line.getDelayedQueue(`tenant:${i}`).offer("a", HOUR);
  const findings = await examined();
  expect(inShort(findings)).toEqual(["warning no-transfer"]);
  expect(findings[0]?.queues).toHaveLength(200);
  expect(findings[0]?.what).toMatch(
    /^200 queues \("tenant:\d+", "tenant:\d+", "tenant:\d+" and 197 more\)/,
  );

  await server.admin.flushall();
  const paused = ["it's", "b", "c", "d"];
  for (const name of paused) {
    await line.getDelayedQueue(name).offer("a", HOUR);
    await line.getDelayedQueue(name).pause();
  }
  const pauses = await examined();
  expect(inShort(pauses)).toEqual(["warning paused"]);
  // One shows who paused them, and one resumes them: each a loop over all four.
  const commands = commandsOf(onlyOf(pauses, "paused"));
  expect(commands.map((command) => command.match(/^for |log|resume/g))).toEqual([
    ["for ", "log"],
    ["for ", "resume"],
  ]);
  await pasteAll(onlyOf(pauses, "paused"));
  expect(inShort((await doctor(server.url)).findings)).toEqual(["warning no-transfer"]);
});
