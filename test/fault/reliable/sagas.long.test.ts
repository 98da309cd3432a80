import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { upTo } from "../../helpers/numbers.ts";
import { newRedis, redisUrl, uniqueName } from "../../helpers/redis.ts";
import type { SagaStep } from "../workers/saga-worker.ts";
import { Crew } from "./crew.ts";

/*
 * Sagas whose steps are acknowledged with the next one, while workers are killed. A step may be attempted again, but it is one
 * message: no step begins twice, and none is missing.
 */

const SAGAS = 40;
const STEPS = 5;
const KILLS = 10;
const WORKERS = 3;

test.each([
  { between: "two queues", partitions: 0 },
  { between: "a queue with partitions and another", partitions: 3 },
])("sagas between $between, while workers are killed", async ({ partitions }) => {
  const name = uniqueName("sagas");
  const redis = newRedis();
  const ledger = `${name}:ledger`;
  const env = { REDIS: redisUrl(), QUEUE: name, STEPS: `${STEPS}`, PARTITIONS: `${partitions}` };
  const program = new URL("../workers/saga-worker.ts", import.meta.url);
  const crew = await Crew.start(WORKERS, env, 2, program);
  const queue = newLine({ codec: "json", transfer: false }).getReliableQueue<SagaStep>(
    name,
    partitions > 0 ? { partitions } : {},
  );
  await queue.offerMany(upTo(SAGAS).map((saga) => ({ payload: { saga, step: 1 }, delay: 0 })));
  for (let i = 0; i < KILLS; i++) {
    await sleep(100 + Math.random() * 200);
    await crew.replaceOne();
  }
  const notes = async () =>
    (await redis.lrange(ledger, 0, -1)).map(
      (text) => JSON.parse(text) as SagaStep & { id: string; attempt: number },
    );
  await eventually(
    async () => {
      const ended = (await notes()).filter(({ step }) => step === STEPS);
      expect(new Set(ended.map(({ saga }) => saga)).size).toBe(SAGAS);
    },
    { within: 60_000 },
  );
  const all = await notes();
  const faults = upTo(SAGAS).flatMap((saga) =>
    upTo(STEPS).flatMap((i) => {
      const own = all.filter((one) => one.saga === saga && one.step === i + 1);
      const ids = new Set(own.map(({ id }) => id));
      const firsts = own.filter(({ attempt }) => attempt === 1);
      return ids.size === 1 && firsts.length <= 1 ? [] : [{ saga, step: i + 1, own }];
    }),
  );
  expect(faults).toEqual([]);
  // Otherwise nothing was killed in its work.
  expect(all.length).toBeGreaterThan(SAGAS * STEPS);
});
