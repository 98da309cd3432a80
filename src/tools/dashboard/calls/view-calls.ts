import { checks } from "../../../inside.ts";
import { messagesIn } from "../../view/locate.ts";
import type { Sighting } from "../../view/sighting.ts";
import { redisHealth } from "../readings/redis-health.ts";
import type { ApiCall } from "./api-call.ts";
import { MOST_SORTED, pageOf, sorted, sortOf } from "./sorted.ts";

// The views of all queues, beside their list.

/** When a month may begin (epoch ms). */
const STARTS = { least: checks.YEAR_1973, most: checks.YEAR_9999 };

/** The hours of a month. */
const HOURS = { least: 0, most: 31 * 24 - 1 };

/** `GET month`: how many messages become due in each hour of the 31 days from `from`, by default the current hour. */
export async function showMonth(call: ApiCall): Promise<unknown> {
  return await call.running.months.month(startOf(call));
}

/** `GET month/cell`: the queues whose messages become due in the hour `hour` of that month. */
export async function showMonthCell(call: ApiCall): Promise<unknown> {
  const hour = call.whole("hour", HOURS) ?? 0;
  return { queues: await call.running.months.cell(startOf(call), hour) };
}

function startOf(call: ApiCall): number {
  const current = Math.floor(call.running.sampler.now / 3_600_000) * 3_600_000;
  return call.whole("from", STARTS) ?? current;
}

/** `GET doctor`: examines Redis and all queues. */
export async function examine({ running }: ApiCall): Promise<unknown> {
  return await running.doctor.examine();
}

/** `GET doctor/latest`: what was found lately. */
export async function showExamination({ running }: ApiCall): Promise<unknown> {
  return await running.doctor.look();
}

/** `GET redis`: what each server says of its own health. */
export async function showRedis({ running: { inspector }, signal }: ApiCall): Promise<unknown> {
  return { servers: await redisHealth(inspector, signal) };
}

/** `GET busy`: the messages in flight of all queues: who holds what, and since when. */
export async function showBusy(call: ApiCall): Promise<unknown> {
  const { sampler, inspector, readings } = call.running;
  const sort = sortOf(call);
  const read = async function* (signal: AbortSignal) {
    const { samples } = await sampler.round();
    for (const [name, { row }] of samples) {
      if (row.inFlight === 0) continue;
      const queue = await inspector.open(name, signal);
      for await (const seen of messagesIn(queue, "in flight", { signal })) yield busyRow(seen);
    }
  };
  const list = JSON.stringify(["busy", sort]);
  const { items, next } = await readings.page(list, pageOf(call, sort), (signal) =>
    sorted(read(signal), sort),
  );
  return { messages: items, next, ...(sort && { sortedAmong: MOST_SORTED }) };
}

function busyRow(seen: Sighting): object {
  const { queue, id, key, group, attempts, takenAt, host, pid, consumer, partition } = seen;
  return { queue, id, key, group, attempts, takenAt, host, pid, consumer, partition };
}
