import { holdLane } from "../../lua/queue/flow.ts";
import { setPaused } from "../../lua/queue/set-paused.ts";
import { groups, openGroup } from "../../lua/reliable/groups.ts";
import { isDeepStrictEqual } from "node:util";
import type { Call } from "../../queue/call.ts";
import {
  checkForPartitions,
  checkNoOwnLanes,
  hasLanes,
  readFlow,
  storeFlow,
  storePin,
  type FlowOptions,
} from "../../queue/flow.ts";
import { steeredLanes, type SteeredLanes } from "../../queue/lanes.ts";
import type { Queue } from "../../queue/queue.ts";
import { formatFact, hasOrdinary, ORDINARY, type Fact } from "../ring/fact.ts";
import type { Part } from "./part.ts";

/**
 * Prepares the partitions that a queue gets by `fact`, before they can hold a message: pauses or resumes them, sets their flow,
 * notes the revisions of its sets of schedules, and creates its consumer groups, which also makes them reliable. A partition that was in use before an earlier
 * change may hold an outdated state.
 *
 * Redis refuses it to a process whose `known` fact is old by now: it may have stood still, and what it has read may be
 * outdated. If Redis went back, any partition may hold an outdated state, and `pausedAs` decides whether the queue is
 * paused.
 */
export async function prepare(
  at: (partition: number) => Part,
  fact: Fact,
  { known, call, ...options }: Preparation = {},
): Promise<void> {
  const { epoch, from, to, scattered } = fact;
  const guarded = { ...call, knownFact: known && formatFact(known) };
  const isOrdinaryToo = hasOrdinary(fact);
  const first = scattered === undefined ? from : 0;
  const fresh = Array.from({ length: Math.max(0, to - first) }, (_, i) => at(first + i));
  const models = (isOrdinaryToo ? [ORDINARY] : [0]).map(at);
  if (scattered === "everywhere") models.push(at(0));
  // When an ordinary queue joins existing partitions, these decide whether it is paused.
  const isLate = isOrdinaryToo && epoch > 1 && scattered === undefined;
  const pausedAs = at(options.pausedAs ?? (isOrdinaryToo && !isLate && !scattered ? ORDINARY : 0));
  const paused = isLate ? models : scattered === undefined ? fresh : [...models, ...fresh];
  let isPaused: boolean;
  do {
    isPaused = await pausedAs.pauses.ask(call);
    for (const part of paused) await setPausedOf(part, isPaused, guarded);
    // Another process may have just paused or resumed the queue.
  } while (isPaused !== (await pausedAs.pauses.ask(call)));
  let flow: FlowOptions | undefined;
  do {
    flow = await readFlow(pausedAs.queue, call);
    checkForPartitions(pausedAs.queue.name, flow);
    if (pausedAs.partition === ORDINARY) await checkNoOwnLanes(pausedAs.queue, call);
    const isInLanes = flow !== undefined && hasLanes(flow);
    const steered = isInLanes ? await steeredLanes(pausedAs.queue, call) : undefined;
    for (const { queue } of paused) {
      await setFlowOf(queue, flow, guarded);
      if (steered !== undefined) await steerAs(steered, queue, guarded);
    }
  } while (!isSame(flow, await readFlow(pausedAs.queue, call)));
  for (const model of models) {
    for (const set of await model.schedules.revisions(call)) {
      for (const { schedules } of fresh) await schedules.raise(set, guarded);
    }
    const names = await model.queue.read("ask for the groups of", groups, {}, call);
    for (const { queue } of fresh) {
      const { channel } = queue.keys;
      for (const group of names) {
        await queue.read("open", openGroup, { channel, group, start: "0" }, guarded);
      }
    }
  }
}

interface Preparation {
  readonly known?: Fact;
  readonly pausedAs?: number;
  readonly call?: Call;
}

async function setPausedOf({ queue, pauses }: Part, isPaused: boolean, call: Call): Promise<void> {
  if ((await pauses.ask(call)) === isPaused) return;
  const args = { channel: queue.keys.channel, isPaused: isPaused ? 1 : 0, reason: "" };
  await queue.read("pause", setPaused, args, call);
}

/** Sets the flow of a part, which begins with nothing saved: the parts together must not exceed the burst. */
async function setFlowOf(queue: Queue, flow: FlowOptions | undefined, call: Call): Promise<void> {
  if (isSame(flow, await readFlow(queue, call))) return;
  await storeFlow(queue, flow, { ...call, isEmpty: true });
}

/** Holds and pins the lanes of a part as those of another one are. */
async function steerAs(
  { now, holds, pins }: SteeredLanes,
  queue: Queue,
  call: Call,
): Promise<void> {
  for (const [lane, pin] of pins) await storePin(queue, lane, pin, call);
  for (const [name, until] of holds) {
    const pin = pins.get(name);
    if (pin !== undefined && "paused" in pin) continue;
    await queue.read("hold a lane of", holdLane, { name, duration: until - now }, call);
  }
}

function isSame(a: FlowOptions | undefined, b: FlowOptions | undefined): boolean {
  return isDeepStrictEqual(a, b);
}
