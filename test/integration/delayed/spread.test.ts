import { expect, test } from "vitest";
import { newLine } from "../../helpers/delayline.ts";
import { uniqueName } from "../../helpers/redis.ts";

const HOUR = 3_600_000;
const AT = Date.now() + 24 * HOUR;

/** A queue as two processes have it open. */
function newQueues() {
  const name = uniqueName("spread");
  const open = () => newLine({ transfer: false }).getReliableQueue<number>(name);
  return [open(), open()] as const;
}

test("with a key a message is later by the same time in every process, however it is offered", async () => {
  const [one, other] = newQueues();
  const options = { key: "coupon:1", spread: HOUR };
  const { deadline } = await one.offerAt(1, AT, options);
  expect(deadline).toBeGreaterThanOrEqual(AT);
  expect(deadline).toBeLessThanOrEqual(AT + HOUR);
  const replaced = await other.offerAt(2, AT, { ...options, onDuplicate: "replace" });
  expect(replaced).toMatchObject({ outcome: "replaced", deadline });
  await one.cancel("coupon:1");
  const [many] = await other.offerMany([{ payload: 3, at: AT, ...options }]);
  expect(many?.deadline).toBe(deadline);
  await one.cancel("coupon:1");
  const before = Date.now();
  const delayed = await one.offer(4, 1000, options);
  const later = deadline - AT;
  expect(delayed.deadline - before - 1000 - later).toBeGreaterThanOrEqual(-5);
  expect(delayed.deadline - before - 1000 - later).toBeLessThan(5000);
});

test("many messages come evenly, with keys and without", async () => {
  const [queue] = newQueues();
  const count = 2000;
  for (const key of [(i: number) => ({ key: `k${i}` }), () => ({})]) {
    const all = Array.from({ length: count }, (_, i) => ({
      payload: i,
      at: AT,
      spread: 999,
      ...key(i),
    }));
    const found = (await queue.offerMany(all)).map(({ deadline }) => deadline - AT);
    expect(Math.min(...found)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...found)).toBeLessThanOrEqual(999);
    const tenths = Array.from({ length: 10 }, (_, k) =>
      found.filter((one) => Math.floor(one / 100) === k),
    );
    // Each has 200, and 130 or fewer by chance once in a million times.
    for (const some of tenths) expect(some.length).toBeGreaterThan(130);
    await queue.clear();
  }
});

test.each([
  [-1, "spread must be a whole number between 0 and"],
  [1.5, "spread must be a whole number"],
  ["5m", "spread must be a whole number, got string"],
  [31 * 24 * HOUR, "spread must be a whole number between 0 and 2592000000 ms"],
])("a spread of %j is refused, and nothing is offered", async (spread, message) => {
  const [queue] = newQueues();
  const options = { spread: spread as number };
  await expect(queue.offer(1, 0, options)).rejects.toThrow(message);
  await expect(queue.offerAt(1, AT, options)).rejects.toThrow(message);
  await expect(queue.offerMany([{ payload: 1, delay: 0, ...options }])).rejects.toThrow(message);
  expect(await queue.size()).toBe(0);
});
