/**
 * Prints how much real time virtual time takes in tests: three days of a queue that two clients consume.
 *
 * `npm run clock`
 */
import { Delayline } from "../src/index.ts";
import { startRedis, testClock } from "../src/adapters/testing/index.ts";

const HOUR = 3_600_000;

/** Returns the real milliseconds of three days. */
async function threeDays(
  url: string,
  options: { readonly partitions?: number; readonly exclusive?: true },
): Promise<number> {
  await using clock = await testClock();
  await using first = new Delayline({ redis: url });
  await using second = new Delayline({ redis: url });
  const name = `clock-${process.pid}-${JSON.stringify(options).replaceAll(/\W/g, "")}`;
  for (const line of [first, second]) line.getReliableQueue(name, options).subscribe(() => {});
  await clock.advance("30 s");
  const queue = first.getReliableQueue<number>(name, options);
  for (let i = 0; i < 100; i++) {
    await queue.offer(i, i * 0.7 * HOUR, options.exclusive && { partitionKey: `key ${i}` });
  }
  const startedAt = performance.now();
  await clock.advance("3 days");
  return performance.now() - startedAt;
}

await using server = await startRedis();
console.log(`Three days with a hundred messages and two clients, on ${server.description}:`);
for (const [kind, options] of Object.entries({
  "no partitions": {},
  "8 partitions": { partitions: 8 },
  "8 partitions, exclusive": { partitions: 8, exclusive: true },
} as const)) {
  const took = await threeDays(server.url, options);
  console.log(`${kind.padEnd(24)} ${(took / 1000).toFixed(1)} s`);
}
