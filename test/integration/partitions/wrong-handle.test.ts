import { channel } from "node:diagnostics_channel";
import { expect, onTestFinished, test } from "vitest";
import type { ScriptEvent } from "../../../src/events.ts";
import type { DelaylineOptions } from "../../../src/index.ts";
import { newLine, newLineThatMayFail, type TestLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { newRedis, redisUrl, uniqueName } from "../../helpers/redis.ts";

// Handles that do not fit a queue: the client reports it once.

const LONG = 60_000;

async function expectTold(line: TestLine, queue: string, message: RegExp): Promise<void> {
  await eventually(() => line.errors.length > 0);
  expect(line.errors).toMatchObject([{ code: "WRONG_HANDLE", queue }]);
  expect(line.errors[0]?.message).toMatch(message);
}

test("exclusive consumption of a queue in use without partitions is told of, and begins with the partitions", async () => {
  const name = uniqueName();
  const owner = newLine();
  await owner.getReliableQueue<string>(name).offer("ordinary", LONG);
  const line = newLineThatMayFail();
  const handled: string[] = [];
  const queue = line.getReliableQueue<string>(name, { exclusive: true });
  queue.subscribe((payload) => void handled.push(payload));
  const message = /has no partitions.*exclusively.*option partitions, call setPartitions, or leave/;
  await expectTold(line, name, message);
  await owner.setPartitions(name, 2);
  await queue.offer("exclusive", 0);
  await eventually(() => handled.length === 1);
  await expectTold(line, name, message);
});

test("exclusive consumption that begins before another process creates the partitions is told nothing", async () => {
  const name = uniqueName();
  const line = newLine();
  const looks: string[] = [];
  const note = (run: unknown) => void looks.push((run as ScriptEvent).script);
  const scripts = channel("delayline:script");
  scripts.subscribe(note);
  onTestFinished(() => {
    scripts.unsubscribe(note);
  });
  const handled: string[] = [];
  const queue = line.getReliableQueue<string>(name, { exclusive: true });
  queue.subscribe((payload) => void handled.push(payload));
  await eventually(() => looks.includes("is-in-use"));
  await newLine().getReliableQueue<string>(name, { partitions: 2 }).offer("first", 0);
  await eventually(() => handled.length === 1);
});

const unable: [string, DelaylineOptions, RegExp][] = [
  [
    "whole members",
    { interop: "redisson" },
    /interop of queue ".*" must be "none" with partitions/,
  ],
  ["no transfer", { interop: "redisson", transfer: false }, /interop of queue/],
];

test.each(unable)(
  "an ordinary handle that cannot follow to the partitions is told (%s)",
  async (_, options, message) => {
    const name = uniqueName();
    await newLine().getDelayedQueue<string>(name, { partitions: 2 }).offer("there", LONG);
    await eventually(async () => (await newRedis().exists(`delayline_partitions:{${name}}`)) === 1);
    const line = newLineThatMayFail(options);
    const queue = line.getDelayedQueue<string>(name);
    await queue.offer("beside", LONG);
    await expectTold(line, name, message);
    await queue.pause();
    await queue.resume();
    await queue.offer("beside", LONG);
    await expectTold(line, name, message);
  },
);

test.each([true, false])(
  "an ordinary handle on another number of servers is told (transfer: %s)",
  async (transfer) => {
    const name = uniqueName();
    const redis = [redisUrl(), redisUrl()];
    await newLine({ redis }).getDelayedQueue<string>(name, { partitions: 2 }).offer("there", LONG);
    await eventually(async () => (await newRedis().exists(`delayline_partitions:{${name}}`)) === 1);
    const line = newLineThatMayFail({ transfer });
    const queue = line.getDelayedQueue<string>(name);
    await queue.offer("beside", LONG);
    await expectTold(line, name, /on 2 server\(s\), and the option redis names 1/);
    await queue.pause();
    await queue.resume();
    await queue.offer("beside", LONG);
    await expectTold(line, name, /on 2 server/);
  },
);

test("a handle that follows its queue to the partitions is told nothing", async () => {
  const name = uniqueName();
  await newLine().getDelayedQueue<string>(name, { partitions: 2 }).offer("there", LONG);
  const line = newLine();
  const queue = line.getDelayedQueue<string>(name);
  await eventually(async () => (await queue.stats()).perPartition.length === 2);
  await queue.offer("here", 0);
  expect(await line.getBlockingQueue<string>(name).take()).toBe("here");
});
