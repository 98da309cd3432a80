import { expect, onTestFinished, test } from "vitest";
import { queueKeys } from "../../../src/queue/keys.ts";
import { PartitionNames } from "../../../src/partitions/ring.ts";
import { newLine, type TestLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";

// Two clients of one process are two processes to each other.

interface Order {
  readonly key: string;
  readonly number: number;
}

/** Notes who handles what, and whether two handlers of one key overlap. */
class Ledger {
  readonly handled: (Order & { readonly by: string; readonly fence: number | undefined })[] = [];
  readonly overlaps: string[] = [];
  readonly #running = new Set<string>();

  async note(by: string, order: Order, fence: number | undefined, duration = 1): Promise<void> {
    if (this.#running.has(order.key)) this.overlaps.push(`${by} ${order.key}`);
    this.#running.add(order.key);
    await new Promise((resolve) => setTimeout(resolve, duration));
    this.#running.delete(order.key);
    this.handled.push({ ...order, by, fence });
  }

  /** The keys whose messages were not handled in the order of their numbers. */
  get disordered(): string[] {
    const last = new Map<string, number>();
    return this.handled.flatMap(({ key, number }) => {
      const before = last.get(key) ?? -1;
      last.set(key, number);
      return number > before ? [] : [key];
    });
  }
}

function consume(line: TestLine, name: string, ledger: Ledger, by: string, duration?: number) {
  return line
    .getBlockingQueue<Order>(name, { partitions: 4, exclusive: true })
    .subscribe((order, { fence }) => ledger.note(by, order, fence, duration));
}

/** Offers messages of 20 keys, `count` of each in their order. */
async function offer(line: TestLine, name: string, first: number, count: number): Promise<void> {
  const queue = line.getDelayedQueue<Order>(name, { partitions: 4 });
  for (let number = first; number < first + count; number++) {
    await queue.offerMany(
      Array.from({ length: 20 }, (_, i) => ({
        payload: { key: `k${i}`, number },
        delay: 0,
        partitionKey: `k${i}`,
      })),
    );
  }
}

test("order per key, while a process joins, one leaves, and the number changes twice", async () => {
  const name = uniqueName("exclusive");
  const ledger = new Ledger();
  const [one, two] = [newLine(), newLine()];
  consume(one, name, ledger, "one");
  const offering = offer(one, name, 0, 100);
  await eventually(() => ledger.handled.length > 100);
  consume(two, name, ledger, "two");
  await eventually(() => ledger.handled.some(({ by }) => by === "two"));
  await one.setPartitions(name, 7);
  await one.setPartitions(name, 3);
  await offering;
  await offer(two, name, 100, 10);
  await eventually(() => ledger.handled.length === 2200);
  expect(ledger.overlaps).toEqual([]);
  expect(ledger.disordered).toEqual([]);
}, 30_000);
