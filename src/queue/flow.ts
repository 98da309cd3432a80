import { clearFlow, setFlow } from "../lua/queue/flow.ts";
import { checkOptions, checkWhole } from "./checks.ts";
import type { Call } from "./call.ts";
import type { Queue } from "./queue.ts";

/** How many messages may become ready in a time. */
export interface Rate {
  /** How many messages in each `per` milliseconds: 1 to 1,000,000. */
  readonly limit: number;
  /** Milliseconds: a whole number from 1 to a day. */
  readonly per: number;
  /**
   * How many messages may become ready at once after a while without any: 1 to 1,000,000. With 1 they keep their distance. Costs
   * a look at Redis for each message if it is less than what falls to 10 ms. Defaults to what falls to 100 ms, but at least 1.
   */
  readonly burst?: number;
}

/** How the messages of a queue become ready. */
export interface FlowOptions {
  /** The rate of the whole queue. Costs two commands for each batch of messages. */
  readonly rate: Rate;
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
  checkOptions("flow option", flow, ["rate"]);
  const { rate } = flow;
  if ((rate as Rate | undefined) === undefined) {
    throw new TypeError("rate must be { limit, per }; to end a limit, call clear()");
  }
  checkOptions("rate option", rate, ["limit", "per", "burst"]);
  const { limit, per, burst } = rate;
  checkWhole("limit", limit, 1, 1_000_000);
  checkWhole("per", per, 1, DAY, " ms");
  if (burst !== undefined) checkWhole("burst", burst, 1, 1_000_000);
  return { rate: { limit, per, ...(burst !== undefined && { burst }) } };
}

/** What a rate means for scripts. */
export function paceOf({ limit, per, burst }: Rate): Pace {
  return {
    step: (per * 1000) / limit,
    burst: burst ?? Math.max(1, Math.round((limit / per) * 100)),
  };
}

/** Stores the flow of a queue; with `isEmpty`, as if its burst were used up. */
export async function storeFlow(
  queue: Queue,
  flow: FlowOptions | undefined,
  call?: Call & { readonly isEmpty?: boolean },
): Promise<void> {
  const { channel } = queue.keys;
  if (flow === undefined)
    return await queue.read("clear the flow of", clearFlow, { channel }, call);
  const args = {
    channel,
    ...paceOf(flow.rate),
    declared: JSON.stringify(flow),
    isEmpty: call?.isEmpty === true ? 1 : 0,
  };
  await queue.read("set the flow of", setFlow, args, call);
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

const DAY = 86_400_000;
