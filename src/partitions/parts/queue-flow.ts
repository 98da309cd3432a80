import { isHeld } from "../../lua/partitions/hold.ts";
import { holdLane } from "../../lua/queue/flow.ts";
import { usedRates } from "../../lua/queue/lanes.ts";
import type { Call } from "../../queue/call.ts";
import {
  checkForPartitions,
  checkNoOwnLanes,
  hasLanes,
  readFlow,
  storeFlow,
  storePin,
  type FlowOptions,
  type PinnedLane,
} from "../../queue/flow.ts";
import {
  lanesAhead,
  lanesNow,
  mergeLanes,
  type LaneNow,
  type LanesAhead,
  steeredLanes,
  type SteeredLanes,
} from "../../queue/lanes.ts";
import type { Parts } from "./parts.ts";

/**
 * The flow of a queue: each part holds it, and has an equal share of its rate and of what may be ready. What a lane may is not
 * shared: a lane is in one part.
 */
export class QueueFlow {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** @throws {TypeError} if the queue has partitions, and cannot have this flow. */
  async set(flow: FlowOptions, call?: Call): Promise<void> {
    if (!this.#parts.following.isOrdinary) {
      checkForPartitions(this.#parts.name, flow);
      if (hasLanes(flow)) await this.#checkShared(call);
    }
    await this.#parts.changeAll(({ queue }) => storeFlow(queue, flow, call), call);
    await this.#parts.activity.note({ what: "flow set", detail: detailOf(flow) });
  }

  /** Holds a lane, "" for messages without one; returns whether the flow has lanes. */
  async hold(lane: string, duration: number, call?: Call): Promise<boolean> {
    const args = { name: lane, duration };
    let isInLanes = false;
    await this.#parts.changeAll(async ({ queue }) => {
      if (await queue.read("hold a lane of", holdLane, args, call)) isInLanes = true;
    }, call);
    return isInLanes;
  }

  /** Pins what a lane may, or ends that; returns whether the flow has lanes. */
  async pin(lane: string, pin: PinnedLane | undefined, call?: Call): Promise<boolean> {
    const isNothing = pin === undefined && !(await this.steered(call)).pins.has(lane);
    const flags: boolean[] = [];
    await this.#parts.changeAll(async ({ queue }) => {
      flags.push(await storePin(queue, lane, pin, call));
    }, call);
    if (!flags.includes(true)) return false;
    const what = pin === undefined ? "lane unpinned" : "lane pinned";
    const detail = pin === undefined ? lane : `${lane}: ${JSON.stringify(pin)}`;
    if (!isNothing) await this.#parts.activity.note({ what, detail });
    return true;
  }

  /** The lanes that are held or pinned. */
  async steered(call?: Call): Promise<Omit<SteeredLanes, "now">> {
    const all = await this.#parts.onAll(({ queue }) => steeredLanes(queue, call), call);
    return {
      holds: new Map(all.flatMap(({ holds }) => [...holds])),
      pins: new Map(all.flatMap(({ pins }) => [...pins])),
    };
  }

  async clear(call?: Call): Promise<void> {
    await this.#parts.changeAll(({ queue }) => storeFlow(queue, undefined, call), call);
    await this.#parts.activity.note({ what: "flow cleared" });
  }

  /** @throws {TypeError} if partitions cannot have the flow that is set, or a lane that a schedule has for itself. */
  async checkForPartitions(call?: Call): Promise<void> {
    checkForPartitions(this.#parts.name, await this.get(call));
    const { following, first } = this.#parts;
    if (following.isOrdinary) await checkNoOwnLanes(first.queue, call);
  }

  /** The flow as it was set; undefined if no part has one. */
  async get(call?: Call): Promise<FlowOptions | undefined> {
    const all = await this.#parts.onAll(({ queue }) => readFlow(queue, call), call);
    return all.find((flow) => flow !== undefined);
  }

  /** The lanes that have waiting messages, have messages in hand where that is limited, or are held: the noisiest first. */
  async lanes(call?: Call): Promise<readonly LaneNow[]> {
    return mergeLanes((await this.#parts.onAll(({ queue }) => lanesNow(queue, call), call)).flat());
  }

  /** What waits in the lanes of each part, and what falls due by `until` (epoch ms): of the first {@link MOST_AHEAD}. */
  async lanesAhead(until: number, call?: Call): Promise<readonly LanesAhead[]> {
    const parts = await this.#parts.all(call);
    const most = Math.ceil(MOST_AHEAD / parts.length);
    return await Promise.all(parts.map(({ queue }) => lanesAhead(queue, until, most, call)));
  }

  /** How many messages of the rate each part has used up that it does not have again yet. */
  async used(call?: Call): Promise<number[]> {
    const ask = { most: 1 };
    const all = await this.#parts.onAll(
      ({ queue }) =>
        queue.read("look at the rate of", usedRates, { ...ask, shares: queue.shares() }, call),
      call,
    );
    return all.map(({ queue }) => queue);
  }

  async #checkShared(call?: Call): Promise<void> {
    const flags = await this.#parts.onAll(
      ({ queue }) => queue.read("look at", isHeld, {}, call),
      call,
    );
    if (!flags.includes(true)) return;
    throw new TypeError(
      `queue "${this.#parts.name}" is consumed exclusively, in a strict order: its flow can have a rate, but no lanes`,
    );
  }
}

/** Messages that a preview looks at, in all parts together. */
const MOST_AHEAD = 100_000;

function detailOf(flow: FlowOptions): string {
  const parts: string[] = [];
  if (flow.rate !== undefined) {
    const { limit, per, burst } = flow.rate;
    parts.push(`${limit} per ${per} ms${burst === undefined ? "" : `, burst ${burst}`}`);
  }
  if (hasLanes(flow)) parts.push("lanes");
  return parts.join(", ");
}
