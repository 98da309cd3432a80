import { expect, test } from "vitest";
import { cli } from "../../helpers/cli.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";
import { queueKeys } from "../../../src/queue/keys.ts";

test("move makes due messages of both kinds ready, and takes none, until Ctrl-C", async () => {
  const line = newLine({ transfer: false });
  const [plain, reliable] = [uniqueName("move"), uniqueName("move")];
  await line.getDelayedQueue(plain).offer("p", 0);
  const queue = line.getReliableQueue<string>(reliable, { retry: [0] });
  await queue.offer("r", 50);
  const interrupt = new AbortController();
  const { signal } = interrupt;
  const running = cli(["move", plain, reliable], { signal });
  await eventually(async () => (await line.stats(plain)).ready === 1);
  await eventually(async () => (await line.stats(reliable)).ready === 1);
  // Retries are moved, too.
  const delivery = await queue.take();
  await delivery.nack({ delay: 20 });
  await eventually(async () => (await line.stats(reliable)).ready === 1);
  interrupt.abort();
  const { code, stdout } = await running;
  expect(code).toBe(130);
  expect(stdout).toBe(
    `Moving the messages of queue "${plain}".\nMoving the messages of queue "${reliable}".\n`,
  );
  // It has closed: nobody moves any more.
  await line.getDelayedQueue(plain).offer("later", 0);
  expect(await newRedis().llen(queueKeys(plain).ready)).toBe(1);
  expect((await line.stats(plain)).listeners).toBe(0);
});

test("move plans schedules", async () => {
  const name = uniqueName("move");
  const queue = newLine({ transfer: false }).getReliableQueue(name);
  await queue.schedules.upsert("often", { every: 60_000, payload: "tick" });
  const { planning } = queueKeys(name);
  const redis = newRedis();
  // Lost, as by an eviction: a planner puts it back.
  await redis.del(planning);
  const interrupt = new AbortController();
  const running = cli(["move", name], { signal: interrupt.signal });
  await eventually(async () => (await redis.exists(planning)) === 1);
  interrupt.abort();
  expect((await running).code).toBe(130);
});

test("move of a queue that does not exist is refused", async () => {
  const { code, stderr } = await cli(["move", uniqueName("nope")]);
  expect(code).toBe(2);
  expect(stderr).toContain("there is no queue");
});
