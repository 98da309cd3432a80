import type { Call } from "../../queue/call.ts";
import { hasLanes, readFlow, storeFlow, type FlowOptions } from "../../queue/flow.ts";
import type { Parts } from "./parts.ts";

/** The flow of a queue: each part holds it, and has an equal share of its rate. */
export class QueueFlow {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** @throws {TypeError} if the queue has partitions, and the flow has lanes. */
  async set(flow: FlowOptions, call?: Call): Promise<void> {
    if (hasLanes(flow) && !this.#parts.following.isOrdinary) {
      throw new TypeError(
        `queue "${this.#parts.name}" has partitions: its flow can have a rate, but no lanes`,
      );
    }
    await this.#parts.changeAll(({ queue }) => storeFlow(queue, flow, call), call);
    await this.#parts.activity.note({ what: "flow set", detail: detailOf(flow) });
  }

  async clear(call?: Call): Promise<void> {
    await this.#parts.changeAll(({ queue }) => storeFlow(queue, undefined, call), call);
    await this.#parts.activity.note({ what: "flow cleared" });
  }

  /** The flow as it was set; undefined if no part has one. */
  async get(call?: Call): Promise<FlowOptions | undefined> {
    const all = await this.#parts.onAll(({ queue }) => readFlow(queue, call), call);
    return all.find((flow) => flow !== undefined);
  }
}

function detailOf(flow: FlowOptions): string {
  const parts: string[] = [];
  if (flow.rate !== undefined) {
    const { limit, per, burst } = flow.rate;
    parts.push(`${limit} per ${per} ms${burst === undefined ? "" : `, burst ${burst}`}`);
  }
  if (hasLanes(flow)) parts.push("lanes");
  return parts.join(", ");
}
