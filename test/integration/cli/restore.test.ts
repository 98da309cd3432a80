import { expect, test } from "vitest";
import { packMember, createId } from "../../../src/queue/message/message.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { cli } from "../../helpers/cli.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
import { newRedis, redisUrl, uniqueName } from "../../helpers/redis.ts";
import { backUp } from "../../helpers/restorable.ts";

const MINUTE = 60_000;

/** A queue with messages that are late by these, and one that is not due. */
async function lateBy(...ages: number[]) {
  const name = uniqueName();
  const redis = newRedis();
  const now = Date.now();
  for (const age of [...ages, -60 * MINUTE]) {
    const member = packMember(createId((now - 120 * MINUTE) * 1000), Buffer.from(String(age)));
    await redis.zadd(queueKeys(name).timeouts, now - age, member);
  }
  return { name, queue: newLine({ transfer: false }).getDelayedQueue(name, { codec: "string" }) };
}

test("overdue: counts by lateness, and says whether the queue is paused, and why", async () => {
  const { name, queue } = await lateBy(1000, 2 * MINUTE, 3 * MINUTE, 90 * MINUTE);
  await queue.pause({ reason: "restored" });
  const { code, stdout, stderr } = await cli(["overdue", name]);
  expect(code).toBe(0);
  expect(stdout.split("\n").map((line) => line.trim().split(/ {2,}/))).toEqual([
    ["LATE BY", "MESSAGES"],
    ["more than 1 h", "1"],
    ["more than 1 min", "2"],
    ["up to 1 min", "1"],
    [""],
  ]);
  expect(stderr).toMatch(
    /^4 messages overdue, the first since .* The queue is paused: restored\.\n$/,
  );
  const json = JSON.parse((await cli(["overdue", name, "--json"])).stdout);
  expect(json).toMatchObject({ overdue: 4, isPaused: true, pauseReason: "restored" });
});

test("overdue --drop removes what is older, and nothing else; --release resumes", async () => {
  const { name, queue } = await lateBy(1000, 2 * MINUTE, 90 * MINUTE);
  await queue.pause();
  const drop = ["overdue", name, "--drop", "--older-than", "1m"];
  const dry = await cli([...drop, "--dry-run"]);
  expect(dry.stderr).toBe(
    `Would drop 2 messages of queue "${name}" that are late by more than 1 min. Nothing was changed.\n`,
  );
  expect(await queue.size()).toBe(4);
  expect((await cli(drop)).code).toBe(2);
  expect((await cli([...drop, "--yes"])).stdout).toBe(`Dropped 2 messages of queue "${name}".\n`);
  expect(await queue.size()).toBe(2);
  expect((await cli([...drop, "--yes"])).code).toBe(1);
  expect(await queue.isPaused()).toBe(true);
  const { stdout } = await cli(["overdue", name, "--release", "--yes"]);
  expect(stdout).toBe(`Resumed queue "${name}": 1 overdue message may come.\n`);
  expect(await queue.isPaused()).toBe(false);
});

test.each([["--drop"], ["--older-than", "1m"], ["--release", "--drop"]])(
  "overdue refuses %j %j",
  async (...options) => {
    const { name } = await lateBy(1000);
    expect((await cli(["overdue", name, ...options])).code).toBe(2);
  },
);

test("overdue --drop removes retries as well, in all partitions", async () => {
  const name = uniqueName();
  const line = newLine();
  const options = { codec: "string", partitions: 3, retry: { initial: 1500 } } as const;
  const queue = line.getReliableQueue(name, options);
  for (let i = 0; i < 6; i++) await queue.offer(String(i), 0, { key: `k${i}` });
  for (let i = 0; i < 6; i++) await (await queue.take()).nack();
  await queue.pause();
  await eventually(async () => (await queue.stats()).overdue === 6);
  const { stdout } = await cli(["overdue", name, "--drop", "--older-than", "1ms", "--yes"]);
  expect(stdout).toBe(`Dropped 6 messages of queue "${name}".\n`);
  expect(await queue.stats()).toMatchObject({ retries: 0, delayed: 0 });
});

test("restore pauses named queues, and says what would come; a worker that starts then gets nothing", async () => {
  const server = await startOwnServer();
  const redis = server.url;
  const names = [uniqueName(), uniqueName()];
  const before = newLine({ redis });
  for (const name of names) await before.getReliableQueue(name).offer("x", 1000);
  const restore = await backUp(server);
  await before.close();
  await restore();
  await eventually(async () => (await newRedis(redis).ping()) === "PONG");
  const asked = await cli(["restore", "--redis", redis]);
  expect(asked.stderr).toContain("give --yes to pause 2 queues");
  const { code, stdout, stderr } = await cli(["restore", "--redis", redis, "--yes"]);
  expect(code).toBe(0);
  for (const name of names) expect(stdout).toContain(name);
  expect(stderr).toContain("Paused 2 queues.");

  const line = newLine({ redis });
  const handled: string[] = [];
  const queues = names.map((name) => line.getReliableQueue<string>(name));
  for (const queue of queues) queue.subscribe((payload) => void handled.push(payload));
  const [first, second] = queues as [(typeof queues)[0], (typeof queues)[0]];
  await eventually(async () => (await first.stats()).overdue === 1);
  expect(await first.stats()).toMatchObject({ isPaused: true, ready: 0, inFlight: 0 });
  expect((await first.stats()).pauseReason).toContain("restored from a backup");
  expect(handled).toEqual([]);
  await cli(["resume", second.name, "--redis", redis, "--yes"]);
  await eventually(() => handled.length === 1);
  expect((await first.stats()).overdue).toBe(1);
});

test("restore --json has a document for each queue, and no queue is no error to repair", async () => {
  const { name } = await lateBy(1000);
  const { stdout } = await cli(["restore", name, "--json", "--yes", "--redis", redisUrl()]);
  expect(JSON.parse(stdout)).toMatchObject({ queue: name, isPaused: true, overdue: 1, ready: 0 });
  const empty = await startOwnServer();
  expect((await cli(["restore", "--redis", empty.url, "--yes"])).code).toBe(1);
});
