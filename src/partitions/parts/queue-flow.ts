import type { Call } from "../../queue/call.ts";
import { readFlow, storeFlow, type FlowOptions } from "../../queue/flow.ts";
import type { Parts } from "./parts.ts";

/** The flow of a queue: each part holds it, and has an equal share of its rate. */
export class QueueFlow {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  async set(flow: FlowOptions, call?: Call): Promise<void> {
    await this.#parts.changeAll(({ queue }) => storeFlow(queue, flow, call), call);
    const { limit, per, burst } = flow.rate;
    const detail = `${limit} per ${per} ms${burst === undefined ? "" : `, burst ${burst}`}`;
    await this.#parts.activity.note({ what: "flow set", detail });
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
