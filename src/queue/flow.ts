import { AHEAD } from "../lua/delayed/in-turns.ts";
import { pinLane, setFlow } from "../lua/queue/flow.ts";
import { checkOptions, checkWhole } from "./checks.ts";
import type { Call } from "./call.ts";
import { MAX_LANE } from "./message/trailer.ts";
import type { Queue } from "./queue.ts";

/** How many messages may become ready per unit of time. */
export interface Rate {
  /** How many messages in each `per` milliseconds: 1 to 1,000,000. */
  readonly limit: number;
  /** Milliseconds: a whole number from 1 to a day. */
  readonly per: number;
  /**
   * How many messages may become ready at once after a pause: 1 to 1,000,000. With 1 they are evenly spaced. A burst below the rate
   * of 10 ms costs a look at Redis for each message. Defaults to the rate of 100 ms, at least 1.
   */
  readonly burst?: number;
}

/** The limits of a lane: of the messages that were offered with its name as `lane`. */
export interface Lane {
  /**
   * The rate of this lane. Costs seven commands for each batch of messages, in addition to the cost of lanes. Defaults to no limit.
   */
  readonly rate?: Rate;
  /**
   * How many messages of the lane may be in hand: ready or in flight, in all processes, 1 to 1,000. For reliable queues only: a
   * plain queue does not know which messages are in hand. The `concurrency` of `subscribe`, in contrast, limits the handlers of one
   * process. Costs a field and an element of a ZSET for each message, and a look when it is settled while others wait. Defaults to
   * no limit.
   */
  readonly concurrency?: number;
  /**
   * Its share of the turns, relative to the other lanes with waiting messages: 0.01 to 100. Costs nothing. Defaults to
   * 1.
   */
  readonly weight?: number;
}

/** The pin of a lane: it is paused, or has these limits, whatever the flow says. */
export type PinnedLane = Lane | { readonly paused: true };

/** How the messages of a queue become ready. */
export interface FlowOptions {
  /** The rate of the whole queue. Costs two commands for each batch of messages. Defaults to no limit. */
  readonly rate?: Rate;
  /**
   * How many messages of the queue may be in hand: ready or in flight, in all processes, 1 to 1,000,000. For reliable queues only.
   * Gives the queue lanes, though all messages may be in one. Costs as much as `lane`. Defaults to no limit.
   */
  readonly concurrency?: number;
  /**
   * Gives the queue lanes, and sets the limits of every lane: `{}` for no limit. Waiting lanes take turns, so one with many
   * messages does not hold up the others; within a lane the higher `priority` is first. Costs some 20 us of Redis's time for a
   * message that waits, and five commands for each batch that does not. Defaults to no lanes.
   */
  readonly lane?: Lane;
  /**
   * Lanes with limits of their own, by name, 1,000 at most. An entry replaces `lane` as a whole. Costs a field in Redis for each.
   * Defaults to none.
   */
  readonly lanes?: Readonly<Record<string, Lane>>;
  /** Gives the queue lanes without limits, to use priorities. Costs as much as `lane`. Defaults to no lanes. */
  readonly order?: "turns";
  /**
   * With lanes: how many messages may be ready before more wait for their turn, 1 to 1,000,000. Nothing overtakes ready messages. A
   * smaller number makes turns and priorities sharper. It costs one look at Redis per this many messages, and consumers wait if
   * they take more than that in 5 ms. Defaults to 100.
   */
  readonly ahead?: number;
}

/** A rate as scripts use it. */
export interface Pace {
  /** Microseconds for each message. */
  readonly step: number;
  readonly burst: number;
}

/**
 * Checks the flow of a queue, and returns a copy without unset options.
 *
 * @throws {TypeError | RangeError} if an option is not legal.
 */
export function checkFlow(flow: FlowOptions): FlowOptions {
  checkOptions("flow option", flow, ["rate", "concurrency", "lane", "lanes", "order", "ahead"]);
  const { rate, concurrency, lane, lanes, order, ahead } = flow;
  if (rate === undefined && !hasLanes(flow)) {
    throw new TypeError(
      'a flow needs a rate, a concurrency, a lane or order: "turns"; to end a limit, call clear()',
    );
  }
  if (order !== undefined && (order as string) !== "turns") {
    throw new TypeError(`order must be "turns", got ${JSON.stringify(order)}`);
  }
  if (concurrency !== undefined) checkWhole("concurrency", concurrency, 1, 1_000_000);
  if (ahead !== undefined) {
    if (!hasLanes(flow)) throw new TypeError("ahead needs lanes");
    checkWhole("ahead", ahead, 1, 1_000_000);
  }
  if (
    lanes !== undefined &&
    (typeof lanes !== "object" || lanes === null || Array.isArray(lanes))
  ) {
    throw new TypeError("lanes must be an object: what each lane may, by its name");
  }
  const names = Object.keys(lanes ?? {});
  if (names.length > MOST_LANES) {
    throw new RangeError(`lanes may name ${MOST_LANES} lanes at most, got ${names.length}`);
  }
  for (const name of names) checkLane(name, "the name of a lane");
  return {
    ...(rate !== undefined && { rate: checkRate(rate) }),
    ...(concurrency !== undefined && { concurrency }),
    ...(lane !== undefined && { lane: checkLaneOptions(lane) }),
    ...(lanes !== undefined && {
      lanes: Object.fromEntries(
        Object.entries(lanes).map(([name, own]) => [name, checkLaneOptions(own)]),
      ),
    }),
    ...(order !== undefined && { order }),
    ...(ahead !== undefined && { ahead }),
  };
}

/**
 * Checks the name of a lane.
 *
 * @throws {TypeError | RangeError} if it is not a text of 1 to 100 bytes.
 */
export function checkLane(lane: unknown, name = "lane"): asserts lane is string {
  if (typeof lane !== "string") throw new TypeError(`${name} must be a string, got ${typeof lane}`);
  if (!lane.isWellFormed()) throw new TypeError(`${name} must be well-formed Unicode`);
  const bytes = Buffer.byteLength(lane);
  if (bytes < 1 || bytes > MAX_LANE) {
    throw new RangeError(`${name} must have 1 to ${MAX_LANE} bytes, got ${bytes}`);
  }
}

function checkRate(rate: Rate): Rate {
  checkOptions("rate option", rate, ["limit", "per", "burst"]);
  const { limit, per, burst } = rate;
  checkWhole("limit", limit, 1, 1_000_000);
  checkWhole("per", per, 1, DAY, " ms");
  if (burst !== undefined) checkWhole("burst", burst, 1, 1_000_000);
  return { limit, per, ...(burst !== undefined && { burst }) };
}

/**
 * Checks a pin of a lane, and returns a copy without unset options.
 *
 * @throws {TypeError | RangeError} if an option is not legal.
 */
export function checkPin(pin: PinnedLane): PinnedLane {
  if (typeof pin === "object" && pin !== null && "paused" in pin) {
    checkOptions("pin option", pin, ["paused"]);
    if ((pin.paused as unknown) !== true) {
      throw new TypeError("paused must be true; to end it, call unpin()");
    }
    return { paused: true };
  }
  return checkLaneOptions(pin);
}

/** A flow with the pins of its lanes applied. */
export function withPins(flow: FlowOptions, pins: ReadonlyMap<string, PinnedLane>): FlowOptions {
  const limits = [...pins].filter((one): one is [string, Lane] => !("paused" in one[1]));
  if (limits.length === 0) return flow;
  return { ...flow, lanes: { ...flow.lanes, ...Object.fromEntries(limits) } };
}

function checkLaneOptions(lane: Lane): Lane {
  checkOptions("lane option", lane, ["rate", "concurrency", "weight"]);
  const { rate, concurrency, weight } = lane;
  if (concurrency !== undefined) checkWhole("concurrency", concurrency, 1, MOST_SLOTS);
  if (weight !== undefined && !(typeof weight === "number" && weight >= 0.01 && weight <= 100)) {
    throw new RangeError(`weight must be a number from 0.01 to 100, got ${String(weight)}`);
  }
  return {
    ...(rate !== undefined && { rate: checkRate(rate) }),
    ...(concurrency !== undefined && { concurrency }),
    ...(weight !== undefined && { weight }),
  };
}

/** Whether messages wait in lanes under this flow. */
export function hasLanes({ concurrency, lane, lanes, order }: FlowOptions): boolean {
  return [concurrency, lane, lanes, order].some((option) => option !== undefined);
}

/** Whether any lane has such a limit. */
export function limitsLanes(
  { lane = {}, lanes = {} }: FlowOptions,
  limit: "rate" | "concurrency",
): boolean {
  return [lane, ...Object.values(lanes)].some((one) => one[limit] !== undefined);
}

/** The limits of a lane. */
export function laneOf({ lane = {}, lanes = {} }: FlowOptions, name: string): Lane {
  return (Object.hasOwn(lanes, name) ? lanes[name] : undefined) ?? lane;
}

/** What a rate means for scripts. */
export function paceOf({ limit, per, burst }: Rate): Pace {
  return {
    step: (per * 1000) / limit,
    burst: burst ?? Math.max(1, Math.round((limit / per) * 100)),
  };
}

/** The limits of a lane, as scripts read them: `step burst cost slots`. */
function wordsOf({ rate, concurrency = 0, weight = 1 }: Lane): string {
  const { step, burst } = rate === undefined ? NO_PACE : paceOf(rate);
  return `${step} ${burst} ${1 / weight} ${concurrency}`;
}

const NO_PACE: Pace = { step: 0, burst: 0 };

/** Stores the flow of a queue; with `isEmpty`, as if its burst were used up. */
export async function storeFlow(
  queue: Queue,
  flow: FlowOptions | undefined,
  call?: Call & { readonly isEmpty?: boolean },
): Promise<void> {
  const { args, rows } = argumentsOf(queue, flow, call?.isEmpty);
  const doing = flow === undefined ? "clear the flow of" : "set the flow of";
  await queue.read(doing, setFlow, args, { ...call, rows });
}

/**
 * Pins the limits of a lane, or ends the pin (`pin` undefined). Returns whether the queue has lanes; if not, nothing has changed.
 */
export async function storePin(
  queue: Queue,
  lane: string,
  pin: PinnedLane | undefined,
  call?: Call,
): Promise<boolean> {
  const words = pin === undefined ? "" : "paused" in pin ? "paused" : wordsOf(pin);
  const text = pin === undefined ? "" : `${words} ${JSON.stringify(pin)}`;
  for (;;) {
    // Again if another process has just set another flow. oxlint-disable-next-line no-await-in-loop
    const flow = await readFlow(queue, call);
    if (flow === undefined || !hasLanes(flow)) return false;
    const { args, rows } = argumentsOf(queue, flow);
    const all = { ...args, pinned: lane, pin: text };
    // oxlint-disable-next-line no-await-in-loop
    if (await queue.read("pin a lane of", pinLane, all, { ...call, rows })) return true;
  }
}

/** A flow as scripts read it. */
function argumentsOf(queue: Queue, flow: FlowOptions | undefined, isEmpty = false) {
  const { channel } = queue.keys;
  const { rate, concurrency = 0, lane = {}, lanes = {}, ahead = AHEAD } = flow ?? {};
  const args = {
    channel,
    kind: flow === undefined ? "none" : hasLanes(flow) ? "lanes" : "paced",
    ...(rate === undefined ? NO_PACE : paceOf(rate)),
    declared: flow === undefined ? "" : JSON.stringify(flow),
    isEmpty: isEmpty ? 1 : 0,
    ahead,
    most: concurrency,
    lane: wordsOf(lane),
    rates: flow !== undefined && limitsLanes(flow, "rate") ? 1 : 0,
    slots: flow !== undefined && limitsLanes(flow, "concurrency") ? 1 : 0,
  };
  const rows = Object.entries(lanes).map(([name, own]) => ({ name, own: wordsOf(own) }));
  return { args, rows };
}

/** The flow of a queue, as it was set; undefined without one, or if a later release has set one that this one cannot read. */
export async function readFlow(queue: Queue, call?: Call): Promise<FlowOptions | undefined> {
  const text = await queue.call(
    "look at the flow of",
    (redis, { flow }) => redis.hget(flow, "declared"),
    call,
  );
  if (text === null) return undefined;
  try {
    return checkFlow(JSON.parse(text) as FlowOptions);
  } catch {
    return undefined;
  }
}

/** @throws {TypeError} if a queue in partitions cannot have this flow: no script sees what is in hand in all of them. */
export function checkForPartitions(queue: string, flow: FlowOptions | undefined): void {
  if (flow?.concurrency === undefined) return;
  throw new TypeError(
    `a flow with a concurrency of the whole queue goes without partitions, which queue "${queue}" has or is to get: limit each lane`,
  );
}

/** @throws {TypeError} if a schedule of the queue has a lane for itself: in partitions its runs would be elsewhere. */
export async function checkNoOwnLanes(queue: Queue, call?: Call): Promise<void> {
  let cursor = "0";
  do {
    const from = cursor;
    const [next, fields] = await queue.call(
      "look at the flow of",
      (redis, { flow }) => redis.hscan(flow, from, "MATCH", "own:*", "COUNT", 1000),
      call,
    );
    if (fields.length > 0) {
      throw new TypeError(
        `queue "${queue.name}" has a schedule whose runs wait for each other, and cannot have partitions: remove the schedule`,
      );
    }
    cursor = next;
  } while (cursor !== "0");
}

const DAY = 86_400_000;
const MOST_LANES = 1000;
const MOST_SLOTS = 1000;
