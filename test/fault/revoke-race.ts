import { expect } from "vitest";
import type { Delayline, Stage } from "../../src/index.ts";
import { newLine } from "../helpers/delayline.ts";
import { eventually } from "../helpers/eventually.ts";
import { uniqueName } from "../helpers/redis.ts";

/** What the handlers of one message have written down. */
interface Record {
  /** The attempts that began. */
  readonly begun: number[];
  /** How its acknowledgements were answered. */
  readonly acks: boolean[];
  /** Whether it has been revoked, and where it was then. */
  revoked: Stage | undefined;
  /** How many attempts had begun, and were delivered, when the answer came. */
  deliveries: number;
  faults: string[];
}

/**
 * Revokes `count` messages while their handlers begin and end, and fail now and then. Whatever a revoke has answered must agree
 * with what the handlers have written down.
 */
export async function raceRevokes(
  count: number,
  options: { readonly partitions?: number } = {},
  meanwhile: (line: Delayline, name: string) => Promise<unknown> = () => Promise.resolve(),
) {
  const name = uniqueName("revokes");
  const records = new Map<number, Record>();
  const settings = { ...options, maxAttempts: 100, retry: [2] };
  const consumers = [newLine(), newLine()].map((line) =>
    line.getReliableQueue<number>(name, settings).subscribe(
      async (number, delivery) => {
        const record = records.get(number) as Record;
        const { revoked, begun } = record;
        begun.push(delivery.attempt);
        const mayBegin =
          revoked === undefined || (revoked === "running" && begun.length <= record.deliveries);
        if (!mayBegin) record.faults.push(`began after "${revoked}"`);
        await pause(6);
        if (Math.random() < 0.3) await delivery.nack({ reason: "again" });
        else record.acks.push(await delivery.ack());
      },
      { concurrency: 10 },
    ),
  );
  const line = newLine();
  const queue = line.getReliableQueue<number>(name, settings);
  const stages: { [S in Stage]?: number } = {};
  let next = 0;
  const changing = meanwhile(newLine(), name);
  const workers = Array.from({ length: 40 }, async () => {
    for (let number = next++; number < count; number = next++) {
      const record: Record = { begun: [], acks: [], revoked: undefined, deliveries: 0, faults: [] };
      records.set(number, record);
      const key = number % 10 === 0 ? { key: `order:${number}` } : undefined;
      const { id } = await queue.offer(number, Math.random() * 4, key);
      await pause(14);
      const { stage, places } = await queue.revoke(key?.key ?? id);
      stages[stage] = (stages[stage] ?? 0) + 1;
      if (stage === "gone") {
        if (!record.acks.includes(true)) await eventually(() => record.acks.length > 0);
        continue;
      }
      record.revoked = stage;
      record.deliveries = places[0]?.attempts ?? 0;
      if (places.length !== 1) record.faults.push(`${places.length} places`);
      const isBegun = record.begun.length > record.deliveries;
      if (isBegun) record.faults.push(`began ${record.begun.length} times before "${stage}"`);
    }
  });
  await Promise.all([changing, ...workers]);
  await eventually(
    async () => {
      const { delayed, ready, inFlight, retries } = await queue.stats();
      return delayed + ready + inFlight + retries === 0;
    },
    { within: 60_000 },
  );
  for (const consumer of consumers) await consumer.close();

  const faults = [...records].flatMap(([number, { revoked, acks, begun, faults: own }]) => {
    const all = [...own];
    const handled = acks.filter(Boolean).length;
    if (revoked === undefined && handled !== 1) all.push(`gone, but handled ${handled} times`);
    if (revoked !== undefined && handled !== 0) all.push(`handled, but "${revoked}"`);
    if (new Set(begun).size !== begun.length) all.push(`attempts ${begun.join(" ")}`);
    return all.map((fault) => `${number}: ${fault}`);
  });
  expect(faults).toEqual([]);
  return { stages, queue, line };
}

/** A pause of up to so many milliseconds. */
const pause = (most: number) => new Promise((resolve) => setTimeout(resolve, Math.random() * most));
