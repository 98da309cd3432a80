import { consumers } from "../../inspect/consumers.ts";
import { isEmpty } from "../../inspect/inspector.ts";
import type { Call } from "./call.ts";
import { HttpError } from "../http/http-error.ts";

/** The spans of a forecast: how long each is (ms), and how many there are. */
const SPANS: Readonly<Record<string, { readonly step: number; readonly count: number }>> = {
  hour: { step: 60_000, count: 60 },
  day: { step: 900_000, count: 96 },
  month: { step: 86_400_000, count: 30 },
};

/** Where a forecast may begin: not before 1970, and not beyond what a deadline can be. */
const INSTANTS = { least: 0, most: 8_000_000_000_000_000 };

/** `GET queues`: all queues at a glance. */
export async function showQueues({ running }: Call): Promise<unknown> {
  const { at, samples, error } = await running.sampler.round();
  const queues = Array.from(samples.values(), ({ row }) => row);
  // Without an answer from Redis there is nothing to show.
  if (error !== undefined && queues.length === 0) throw new HttpError(503, error);
  return { at, queues };
}

/** `GET queues/:q`: one queue with its partitions. */
export async function showQueue(call: Call): Promise<unknown> {
  const { running, queue } = call;
  call.checkQueue();
  const sample = await running.sampler.look(queue);
  if (sample.stats === undefined) throw new HttpError(503, sample.row.error ?? "not known");
  return { at: running.sampler.now, ...(await running.view.show(queue, sample)) };
}

/** `GET queues/:q/history`: the last hour, as far as somebody has looked. */
export function history({ running, queue }: Call): unknown {
  return { points: running.sampler.histories.points(queue) };
}

/** `GET queues/:q/forecast`: what falls due when. The first span begins with the current minute, quarter or day (UTC). */
export async function forecast(call: Call): Promise<unknown> {
  const span = call.value("span") ?? "hour";
  const spans = Object.hasOwn(SPANS, span) ? SPANS[span] : undefined;
  if (spans === undefined) throw new HttpError(400, "span must be hour, day or month");
  const { messages, stats } = await call.open();
  const begun = Math.floor(stats.serverTime / spans.step) * spans.step;
  const from = call.whole("from", INSTANTS) ?? begun;
  return await messages.forecast({ ...spans, from, signal: call.signal });
}

/** `GET queues/:q/consumers`: who takes from a reliable queue. */
export async function showConsumers(call: Call): Promise<unknown> {
  return { consumers: await consumers(await call.open(), { signal: call.signal }) };
}

/** `POST queues/:q/pause`. Where nothing is it would make a queue. */
export async function pause(call: Call): Promise<unknown> {
  const { messages, stats } = await call.open();
  if (isEmpty(stats) && !call.running.sampler.knows(call.queue)) {
    throw new HttpError(404, `there is no queue "${call.queue}"`);
  }
  await messages.pause({ signal: call.signal });
  return { done: true };
}

/** `POST queues/:q/resume`. */
export async function resume(call: Call): Promise<unknown> {
  await (await call.open()).messages.resume({ signal: call.signal });
  return { done: true };
}
