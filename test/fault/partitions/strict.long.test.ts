import { expect, test } from "vitest";
import type { Child } from "../../../scripts/child/child.ts";
import type { FailedAttempt } from "../../../src/index.ts";
import { bundle } from "../../helpers/bundle.ts";
import { startChild } from "../../helpers/child.ts";
import { collect } from "../../helpers/collect.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { newRedis, redisUrl, uniqueName } from "../../helpers/redis.ts";

interface Handled {
  readonly payload: string;
  readonly attempt: number;
  readonly failures: readonly FailedAttempt[];
  /** When the handler began, on the server's clock (epoch ms). */
  readonly at: number;
}

test("strict: a failed message keeps its pauses and its attempts, whoever leaves, joins or is killed meanwhile", async () => {
  const name = uniqueName("strict");
  const redis = newRedis();
  // The third is shorter than the lease of the process that dies in it.
  const pauses = [4000, 9000, 1000, 4000];
  const strict = { partitions: 1, exclusive: true, strict: true, retry: pauses, maxAttempts: 5 };
  const queue = newLine({ codec: "json" }).getReliableQueue<string>(name, strict);
  const program = await bundle(new URL("../workers/strict-worker.ts", import.meta.url));
  const start = async (diesAfter = 0): Promise<Child> => {
    const child = startChild(program, {
      env: {
        REDIS: redisUrl(),
        QUEUE: name,
        OPTIONS: JSON.stringify(strict),
        DIES_AFTER: String(diesAfter),
      },
    });
    await child.next((word) => word === "loaded", 30_000);
    return child;
  };
  const read = async () =>
    (await redis.lrange(`${name}:log`, 0, -1)).map((one) => JSON.parse(one) as Handled);
  /** Waits for an attempt of the message "bad", and checks that the pause before it was over. */
  const tried = async (attempt: number) => {
    let found: Handled | undefined;
    const isTried = async () => {
      found = (await read()).find((one) => one.payload === "bad" && one.attempt === attempt);
      expect(found).toBeDefined();
    };
    await eventually(isTried, { within: 30_000 });
    const { at = 0, failures = [] } = found ?? {};
    const waited = at - (failures.at(-1)?.at ?? 0);
    expect(waited).toBeGreaterThanOrEqual(pauses[attempt - 2] ?? 0);
  };
  const [leaving, first, second, third, last] = await Promise.all([
    start(),
    start(2),
    start(3),
    start(),
    start(),
  ]);
  await leaving.send("go");
  await queue.offerMany(
    ["good", "bad", "behind"].map((payload) => ({ payload, delay: 0, partitionKey: "k" })),
  );

  await leaving.next((word) => word === "failed 1");
  await first.send("go");
  await leaving.send("leave");
  await leaving.next((word) => word === "left");
  await tried(2);
  await first.exit;
  await second.send("go");
  await tried(3);
  await second.exit;
  await third.send("go");
  await tried(4);
  await third.next((word) => word === "failed 4");
  await last.send("go");
  await third.kill();
  await tried(5);

  await eventually(async () => (await read()).some(({ payload }) => payload === "behind"), {
    within: 30_000,
  });
  const log = await read();
  expect(log.map(({ payload, attempt }) => `${payload} ${attempt}`)).toEqual([
    "good 1",
    ...[1, 2, 3, 4, 5].map((attempt) => `bad ${attempt}`),
    "behind 1",
  ]);
  const [letter] = await collect(queue.deadLetters);
  expect(letter?.failures.map(({ attempt, reason }) => [attempt, reason])).toEqual(
    [1, 2, 3, 4, 5].map((attempt) => [attempt, "never"]),
  );
  expect(log.at(-1)?.at).toBeGreaterThanOrEqual(letter?.diedAt.getTime() ?? Infinity);
}, 120_000);
