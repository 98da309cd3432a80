import { checks, type past } from "../../../inside.ts";
import { flowInWords, pinInWords } from "../../view/flow-words.ts";
import { consumers } from "../../view/locate.ts";
import { wordsOf } from "../../view/activity.ts";
import { isEmpty } from "../../view/inspector.ts";
import { HttpError, reply } from "../http/reply.ts";
import {
  flowsOf,
  folded,
  foldedLine,
  isFresh,
  merged,
  mergedFlows,
  pastOf,
  pointsOf,
  SPANS_BACK,
  totalFlows,
  totalOf,
  type Flows,
  type Lines,
  type SpanBack,
} from "../../view/samples/lines.ts";
import type { ApiCall, Running } from "./api-call.ts";
import type { Sample } from "../../view/samples/sampler.ts";
import { formatInstant } from "../../view/instants.ts";
import { troubleInWords } from "../../view/trouble.ts";

/** The spans that a forecast can cover: `count` intervals of `step` milliseconds. */
const SPANS: Readonly<Record<string, { readonly step: number; readonly count: number }>> = {
  hour: { step: 60_000, count: 60 },
  day: { step: 900_000, count: 96 },
  month: { step: 86_400_000, count: 30 },
};

/** When a forecast may begin (epoch ms). */
const STARTS = { least: checks.YEAR_1973, most: checks.YEAR_9999 };

/** `GET queues`: the numbers of all queues. */
export async function showQueues({ running }: ApiCall): Promise<unknown> {
  const { at, samples, trouble } = await running.sampler.round();
  const queues = Array.from(samples.values(), ({ row }) => row).filter((row) => !row.isMissing);
  // With no queues known from before, there is nothing to show.
  if (trouble !== undefined && trouble.kind !== "refusing" && queues.length === 0) {
    throw new HttpError(503, troubleInWords(trouble, formatInstant));
  }
  return { at, queues, ...(trouble !== undefined && { trouble }) };
}

/** `GET queues/:q`: the numbers of one queue and of its partitions. */
export async function showQueue(call: ApiCall): Promise<unknown> {
  const { running, queue } = call;
  call.checkQueue();
  const sample = await running.sampler.look(queue);
  if (sample.failure !== undefined) throw new HttpError(503, failureOf(sample));
  return { at: running.sampler.now, ...(await running.view.show(queue, sample)) };
}

function failureOf({ row, failure }: Sample): string {
  return row.error ?? (failure instanceof Error ? failure.message : String(failure));
}

/** How far back a call wants to look, from its query. */
function spanBackOf(call: ApiCall): SpanBack {
  const span = call.value("span") ?? "hour";
  if (Object.hasOwn(SPANS_BACK, span)) return span as SpanBack;
  throw new HttpError(400, `span must be ${Object.keys(SPANS_BACK).join(", ")}`);
}

/**
 * `GET queues/:q/history`: the numbers of the last hour, day or 90 days: as Redis has them, and of the last hour what this
 * dashboard has read, every ten seconds.
 */
export async function history(call: ApiCall): Promise<unknown> {
  const { running, queue } = call;
  call.checkQueue();
  const span = spanBackOf(call);
  const { kept, sampler } = running;
  const range = { ...SPANS_BACK[span], now: sampler.now };
  const past = (await kept.read([queue], range)).get(queue);
  const live = sampler.histories.points(queue);
  const firstAt = span === "hour" ? (live[0]?.at ?? Infinity) : Infinity;
  const before = (past === undefined ? [] : pointsOf(past)).filter(({ at = 0 }) => at < firstAt);
  const points = span === "hour" ? [...before, ...live] : before;
  return { points, isKept: past !== undefined && isFresh(past), whyNot: kept.whyNot };
}

/** The most values of a line: it is some hundred pixels wide. */
const MOST_VALUES = 96;

/**
 * `GET lines`: the last hour, day or 90 days of all queues, and of their sums, as Redis or this dashboard has them. The sums
 * also tell what became ready and failed, per minute. Computed
 * once a minute for all pages: of 200 queues it takes this process 0.2 s.
 */
export async function showLines(call: ApiCall): Promise<Response> {
  const { kept, sampler } = call.running;
  const names = [...(await sampler.round()).samples.keys()];
  const span = spanBackOf(call);
  const range = { ...SPANS_BACK[span], now: sampler.now };
  const key = JSON.stringify([span, Math.floor(range.now / MINUTE), names, kept.whyNot]);
  let latest = latestLines.get(call.running);
  if (latest?.key !== key) {
    latest = { key, text: linesOf(call.running, names, range) };
    latestLines.set(call.running, latest);
  }
  return reply(await latest.text, 200, { "content-type": "application/json; charset=utf-8" });
}

const MINUTE = 60_000;

const latestLines = new WeakMap<
  Running,
  { readonly key: string; readonly text: Promise<string> }
>();

async function linesOf(
  { kept, sampler }: Running,
  names: readonly string[],
  range: past.PastRange,
): Promise<string> {
  const pasts = await kept.read(names, range);
  const queues: Record<string, Lines> = {};
  const all: { values: Lines; flows: Flows }[] = [];
  let scale: { from: number; step: number } | undefined;
  for (const name of names) {
    const stored = pasts.get(name);
    const live = pastOf(sampler.histories.minutes(name), range);
    const past = stored !== undefined && isFresh(stored) ? stored : merged(stored, live);
    if (past === undefined) continue;
    const { from, step, values } = folded(past, MOST_VALUES);
    scale = { from, step };
    queues[name] = values;
    // Of days Redis knows only the most.
    if (live === undefined) continue;
    const flows = mergedFlows(flowsOf(live, live.readied), stored && flowsOf(stored));
    all.push({ values: past.values, flows });
  }
  const flows = totalFlows(all);
  const totals = {
    ...totalOf(Object.values(queues)),
    readied: foldedLine(flows.readied, MOST_VALUES, true),
    failed: foldedLine(flows.failed, MOST_VALUES, true),
  };
  const isKept = [...pasts.values()].some(isFresh);
  // The values of lines are in arrays, where JSON has null for undefined by itself.
  return JSON.stringify({ ...scale, totals, queues, isKept, whyNot: kept.whyNot ?? null });
}

/**
 * `GET queues/:q/forecast`: how many messages become due in each interval. Begins at `from`, by default with the
 * current minute, quarter of an hour, or day (UTC).
 */
export async function forecast(call: ApiCall): Promise<unknown> {
  const intervals = spanOf(call);
  const { messages, stats } = await call.open();
  const current = Math.floor(stats.serverTime / intervals.step) * intervals.step;
  const from = call.whole("from", STARTS) ?? current;
  return await messages.forecast({ ...intervals, from, signal: call.signal });
}

function spanOf(call: ApiCall): { readonly step: number; readonly count: number } {
  const span = call.value("span") ?? "hour";
  const intervals = Object.hasOwn(SPANS, span) ? SPANS[span] : undefined;
  if (intervals === undefined) throw new HttpError(400, "span must be hour, day or month");
  return intervals;
}

/**
 * `GET queues/:q/preview`: what becomes ready in the intervals of a forecast with the present flow of the queue, or, with `rate`
 * messages in each `per` milliseconds, with that rate in place of its own. `flow`: that flow in words, null without one.
 */
export async function preview(call: ApiCall): Promise<unknown> {
  const { step, count } = spanOf(call);
  const limit = call.whole("rate", { least: 1, most: 1_000_000 });
  const per = call.whole("per", { least: 1, most: 86_400_000 }) ?? 1000;
  const { messages } = await call.open();
  const { signal } = call;
  const present = await messages.flow.get({ signal });
  const flow = limit === undefined ? present : { ...present, rate: { limit, per } };
  const foreseen = await messages.flow.preview({ ...(flow && { flow }), step, count, signal });
  return { ...foreseen, flow: flow === undefined ? null : flowInWords(flow) };
}

/** `GET queues/:q/consumers`: the consumers of a reliable queue. */
export async function showConsumers(call: ApiCall): Promise<unknown> {
  return { consumers: await consumers(await call.open(), { signal: call.signal }) };
}

/** `GET queues/:q/flow`: the flow of a queue in words, how many messages wait for their turn, and the lanes with the most. */
export async function showFlow(call: ApiCall): Promise<unknown> {
  const { messages } = await call.open();
  const { signal } = call;
  const [flow, { waiting, lanes }] = await Promise.all([
    messages.flow.get({ signal }),
    messages.flow.state({ limit: MOST_LANES + 1, signal }),
  ]);
  return {
    flow: flow === undefined ? null : flowInWords(flow),
    waiting,
    lanes: lanes.slice(0, MOST_LANES).map(({ pinned, ...lane }) => ({
      ...lane,
      pinned: pinned === undefined ? null : pinInWords(pinned),
    })),
    isMore: lanes.length > MOST_LANES,
  };
}

/** `POST queues/:q/lanes/change`: pauses a lane, whatever code sets, or lets the flow say again what it may. */
export async function changeLane(call: ApiCall): Promise<unknown> {
  const { name, verb } = call.lane;
  const { flow } = (await call.open()).messages;
  const options = { signal: call.signal };
  try {
    if (verb === "pause") await flow.pin(name, { paused: true }, options);
    else await flow.unpin(name, options);
    return { done: true };
  } catch (error) {
    // A flow without lanes.
    if (error instanceof TypeError) throw new HttpError(409, error.message);
    throw error;
  }
}

/** The lanes that the page of a queue shows. */
const MOST_LANES = 20;

/** `GET queues/:q/log`: what was done to the queue, the newest first. */
export async function showLog(call: ApiCall): Promise<unknown> {
  const { inside } = await call.open();
  const entries = await inside.activity({ signal: call.signal });
  return {
    entries: entries.map((entry) => ({ at: entry.at, by: entry.by, what: wordsOf(entry) })),
  };
}

/** `POST queues/:q/pause`. Refuses unknown names: pausing would create a queue. */
export async function pause(call: ApiCall): Promise<unknown> {
  const { messages, stats } = await call.open();
  if (isEmpty(stats) && !call.running.sampler.knows(call.queue)) {
    throw new HttpError(404, `there is no queue "${call.queue}"`);
  }
  await messages.pause({ signal: call.signal });
  return { done: true };
}

/** `POST queues/:q/resume`. */
export async function resume(call: ApiCall): Promise<unknown> {
  await (await call.open()).messages.resume({ signal: call.signal });
  return { done: true };
}
