import type { QueueFlow } from "../partitions/parts/queue-flow.ts";
import type { Numbers, Spans } from "../partitions/parts/numbers.ts";
import { callOf, checkCall, type Call, type CallOptions } from "../queue/call.ts";
import { checkDuration, checkOptions, checkSignal, checkWhole } from "../queue/checks.ts";
import {
  checkFlow,
  checkLane,
  checkPin,
  hasLanes,
  laneOf,
  limitsLanes,
  paceOf,
  withPins,
  type FlowOptions,
  type Lane,
  type PinnedLane,
} from "../queue/flow.ts";
import { beginOf, checkForecast, timeOf, type ForecastOptions } from "./forecast.ts";
import { playLanes, type PlayedSpans } from "./lane-spans.ts";
import { pacedSpans, type PacedSpan } from "./paced-spans.ts";

/** Options of {@link Flow.preview}. */
export interface PreviewOptions extends ForecastOptions {
  /** The flow to try. Defaults to the flow that is set, if any. */
  readonly flow?: FlowOptions;
}

/** What {@link Flow.preview} foresees. */
export interface FlowPreview {
  /** When the first span begins (epoch ms on the server's clock). */
  readonly from: number;
  /** How long each span is (ms). */
  readonly step: number;
  readonly spans: readonly FlowSpan[];
  /** When the last message that falls due in these spans has become ready (epoch ms); undefined if that is after the last span. */
  readonly endsAt: number | undefined;
  /**
   * The deadline (epoch ms) up to which messages are in the preview. Later ones are left out: this happens in a flow whose lanes
   * have rates, if more than 100,000 messages or 100,000 retries fall due in these spans. Undefined if all are in it.
   */
  readonly seenUntil: number | undefined;
}

/** A span of a {@link FlowPreview}. */
export interface FlowSpan {
  /** When it begins (epoch ms). */
  readonly at: number;
  /** How many messages and retries fall due in it; the first span also counts those that are already due. */
  readonly due: number;
  /** How many become ready in it. */
  readonly ready: number;
  /** How many wait for their turn at its end. */
  readonly waiting: number;
}

/** Options of {@link Flow.state}. */
export interface StateOptions extends CallOptions {
  /** How many lanes, 1 to 1,000. Defaults to 100. */
  readonly limit?: number;
}

/** The messages that wait for their turn. */
export interface FlowState {
  /** How many messages and retries wait, in all lanes. */
  readonly waiting: number;
  /**
   * The lanes that have waiting messages, have messages in hand where `concurrency` limits that, or are held or pinned. The lanes
   * with the most waiting come first, then those with the most in hand. Empty if the queue has no lanes.
   */
  readonly lanes: readonly LaneState[];
}

/** A lane now. */
export interface LaneState {
  /** Its name; empty for the messages that were offered without a lane. */
  readonly lane: string;
  /** How many messages and retries wait in it. */
  readonly waiting: number;
  /**
   * How many of its messages are in hand: ready or in flight, in all processes. Undefined unless the flow limits the `concurrency`
   * of this lane. Messages that became ready before the limit was set do not count.
   */
  readonly running: number | undefined;
  /**
   * Until when none of its messages becomes ready (epoch ms on the server's clock): it has used up its rate, has its full
   * `concurrency` in hand, or is held. Undefined if it may go on, or is paused.
   */
  readonly restsUntil: number | undefined;
  /** The pin that overrides the flow; undefined if there is none. */
  readonly pinned: PinnedLane | undefined;
}

/**
 * How the messages of a queue become ready: at what rate. Redis stores it, and every process obeys.
 *
 * A due message that has to wait stays where it is: until its turn it can be cancelled, found and rescheduled.
 */
export class Flow {
  readonly #flow: QueueFlow;
  readonly #numbers: Numbers;

  /** @internal Use `flow` of a queue. */
  constructor(flow: QueueFlow, numbers: Numbers) {
    this.#flow = flow;
    this.#numbers = numbers;
  }

  /**
   * Sets the flow, for all processes and at once. It replaces the previous flow; messages that became ready under that one still
   * count.
   *
   * In every span of `w` milliseconds at most `burst + w * limit / per` messages and retries become ready, even if processes crash.
   * Messages that are already ready or were `put` are not held back. Each partition has an equal share of the rate, the burst and
   * `ahead`, at least 1. A lane is in one partition. A `concurrency` of the whole queue is refused in a partitioned queue, and
   * lanes are refused with exclusive consumers. Java processes and older releases that move messages ignore the flow.
   *
   * @throws {TypeError | RangeError} if an option is not legal; nothing was sent.
   */
  async set(flow: FlowOptions, options?: CallOptions): Promise<void> {
    await this.#flow.set(checkFlow(flow), checkCall(options));
  }

  /** Returns the flow as it was set; undefined without one. Pins are not in it: see `state`. */
  async get(options?: CallOptions): Promise<FlowOptions | undefined> {
    return await this.#flow.get(checkCall(options));
  }

  /**
   * Holds a lane for `duration` milliseconds, in a flow with lanes: until then none of its messages becomes ready, and the other
   * lanes go on. Messages that are already ready are still delivered. A longer hold stays in force. A hold survives a new flow with
   * lanes; `clear` ends it. Use it when a partner says when to come again.
   *
   * @throws {TypeError | RangeError} if the flow has no lanes, or an argument is not legal.
   */
  async hold(lane: string, duration: number, options?: CallOptions): Promise<void> {
    checkLane(lane);
    checkDuration("duration", duration);
    if (await this.#flow.hold(lane, duration, checkCall(options))) return;
    throw new TypeError("the flow of the queue has no lanes to hold");
  }

  /**
   * Pins the limits of a lane, or pauses it, in a flow with lanes. Until `unpin`, the pin overrides whatever any process says of
   * the lane by `set`, now or later. Meant for people who steer a running queue whose processes set its flow when they start.
   * Messages that are already ready are still delivered. `clear`, or a flow without lanes, ends all pins. Pausing a lane ends its
   * hold.
   *
   * @throws {TypeError | RangeError} if the flow has no lanes, or an argument is not legal.
   */
  async pin(lane: string, pinned: PinnedLane, options?: CallOptions): Promise<void> {
    checkLane(lane);
    if (await this.#flow.pin(lane, checkPin(pinned), checkCall(options))) return;
    throw new TypeError("the flow of the queue has no lanes to pin");
  }

  /** Ends the pin of a lane: the flow applies to it again. Does nothing if the lane is not pinned. */
  async unpin(lane: string, options?: CallOptions): Promise<void> {
    checkLane(lane);
    await this.#flow.pin(lane, undefined, checkCall(options));
  }

  /** Ends the flow. Waiting messages become ready, in order. */
  async clear(options?: CallOptions): Promise<void> {
    await this.#flow.clear(checkCall(options));
  }

  /**
   * Returns how many messages wait for their turn now, and the lanes with the most. It counts in pages, so it is not a snapshot of
   * a busy queue. A retry that was cancelled while it waited counts until its turn. Every lane with waiting messages is counted, at
   * some 9 us of Redis's time each, 50 to a script. If lanes have a `concurrency`, checking each message in hand costs some 3 us
   * more.
   *
   * @throws {TypeError | RangeError} if an option is not legal.
   */
  async state(options: StateOptions = {}): Promise<FlowState> {
    checkOptions("state option", options, ["limit", "signal"]);
    const { limit = 100, signal } = options;
    checkWhole("limit", limit, 1, 1000);
    checkSignal(signal);
    const call = callOf(options);
    const [flow = {}, lanes] = await Promise.all([this.get(call), this.#flow.lanes(call)]);
    const inLanes = lanes.reduce((total, { waiting }) => total + waiting, 0);
    // Without lanes, what waits is what is due.
    const waiting = inLanes > 0 ? inLanes : (await this.#numbers.stats(call)).waiting;
    const shown = lanes.slice(0, limit).map(({ running, ...one }) => {
      const isPinned = one.pinned !== undefined && !("paused" in one.pinned);
      const limits = isPinned ? (one.pinned as Lane) : laneOf(flow, one.lane);
      return { ...one, running: limits.concurrency === undefined ? undefined : running };
    });
    return { waiting, lanes: shown };
  }

  /**
   * Foresees when messages become ready, under the flow that is set or one that you try out, without setting it. Use it to choose a
   * rate. It knows neither later offers nor how long handlers take, so it ignores `concurrency` and `ahead`. Costs as much as
   * `forecast` with up to 1,000 spans.
   *
   * If lanes have rates, or are held or paused, it reads the lanes of the messages that fall due in the spans and plays them
   * through the turns: the first 100,000 messages and as many retries (`seenUntil` says up to which deadline). This costs about a
   * millisecond of Redis's time and one script per 500 messages, and up to a second of this process's time, with pauses for other
   * work.
   *
   * @throws {TypeError | RangeError} if an option is not legal.
   */
  async preview(options: PreviewOptions): Promise<FlowPreview> {
    checkForecast(options, "preview", ["flow"]);
    const { step, count } = options;
    const call = callOf(options);
    const asked = options.flow === undefined ? await this.get(call) : checkFlow(options.flow);
    const { holds, pins } = await this.#flow.steered(call);
    const flow = asked && hasLanes(asked) ? withPins(asked, pins) : asked;
    const now = await timeOf(this.#numbers, call);
    const from = beginOf(options.from, now);
    const areHeld = flow !== undefined && hasLanes(flow) && holds.size > 0;
    if (flow !== undefined && (areHeld || limitsLanes(flow, "rate"))) {
      return await this.#previewOfLanes(flow, { from, step, count }, call);
    }
    const pace = flow?.rate && paceOf(flow.rate);
    const used = await this.#flow.used(call);
    const shares = used.length;
    const burst = pace && Math.max(1, Math.floor(pace.burst / shares));
    const saved = burst && used.reduce((all, one) => all + Math.max(0, burst - one), 0);
    // What falls due until the first span may still wait at its beginning.
    const lead = { from: now, step: (from - now) / LEAD, count: from > now ? LEAD : 0 };
    const fine = Math.max(1, Math.min(Math.floor(1000 / count), FINEST, step));
    const spans = { from, step: step / fine, count: count * fine };
    const [before, early, counts] = await Promise.all([
      this.#numbers.dueBefore(Math.min(now, from), call),
      this.#numbers.forecast(lead, call),
      this.#numbers.forecast(spans, call),
    ]);
    const led = pacedSpans({ ...lead, counts: early, before, tokens: saved }, pace, shares);
    const { waiting = before, tokens = saved } = led.at(-1) ?? {};
    const shaped = pacedSpans({ ...spans, counts, before: waiting, tokens }, pace, shares);
    return joined(shaped, { from, step, fine });
  }

  async #previewOfLanes(flow: FlowOptions, spans: Spans, call?: Call): Promise<FlowPreview> {
    const { from, step, count } = spans;
    const ahead = await this.#flow.lanesAhead(from + step * count - 1, call);
    const played = await Promise.all(
      ahead.map((one) => playLanes(one, flow, spans, ahead.length, call?.signal)),
    );
    const total = (of: (one: PlayedSpans) => number) =>
      played.reduce((all, one) => all + of(one), 0);
    let waiting = total(({ before }) => before);
    const whole = Array.from({ length: count }, (_, i): FlowSpan => {
      const due = total((one) => one.due[i] ?? 0);
      const ready = total((one) => one.ready[i] ?? 0);
      const span = { at: from + i * step, due: due + (i === 0 ? waiting : 0), ready };
      waiting += due - ready;
      return { ...span, waiting };
    });
    const lastAt = Math.max(...played.map((one) => one.lastAt ?? -Infinity));
    const endsAt = waiting > 0 || lastAt < from ? undefined : lastAt;
    const seen = ahead.map(({ seenUntil }) => seenUntil).filter((end) => end !== undefined);
    return {
      from,
      step,
      spans: whole,
      endsAt,
      seenUntil: seen.length > 0 ? Math.min(...seen) : undefined,
    };
  }
}

function joined(
  all: readonly PacedSpan[],
  { from, step, fine }: { readonly from: number; readonly step: number; readonly fine: number },
): FlowPreview {
  const spans: FlowSpan[] = [];
  for (let i = 0; i < all.length; i += fine) {
    const parts = all.slice(i, i + fine);
    spans.push({
      at: from + spans.length * step,
      due: sum(parts, ({ due }) => due),
      ready: sum(parts, ({ ready }) => ready),
      waiting: parts.at(-1)?.waiting ?? 0,
    });
  }
  const last = all.findLastIndex(({ ready, waiting }) => ready + waiting > 0);
  const end = all[last];
  const endsAt = end === undefined || end.waiting > 0 ? undefined : end.lastAt;
  return { from, step, spans, endsAt, seenUntil: undefined };
}

function sum(spans: readonly PacedSpan[], of: (span: PacedSpan) => number): number {
  return spans.reduce((total, span) => total + of(span), 0);
}

/** Parts of the time until the first span. */
const LEAD = 50;

/** The most parts of a span, for the places of its messages in it. */
const FINEST = 20;
