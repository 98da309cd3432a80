import type { Call } from "../queue/call.ts";
import { bucketOfKey } from "../queue/message/bucket.ts";
import type { Codes } from "../schedules/recipes.ts";
import type { Found, NamedRecord, StoredSchedules } from "../schedules/stored-schedules.ts";
import type { Parts } from "./parts/parts.ts";
import { isRefusedAsOld, type Routing } from "./routing/routing.ts";

/**
 * The schedules of a queue, whichever parts it has; {@link StoredSchedules} are those of one part. A schedule is in the
 * partition of its name's bucket, and so are its messages.
 */
export class Schedules {
  /** What this client has declared and Redis cannot hold. */
  readonly codes: Codes;
  readonly #parts: Parts;
  readonly #routing: Routing;

  constructor(parts: Parts, routing: Routing) {
    this.#parts = parts;
    this.#routing = routing;
    this.codes = parts.codes;
  }

  get(name: string, call?: Call): Promise<Found> {
    return this.#at(name, (stored, to) => stored.get(name, to), call);
  }

  /** See {@link StoredSchedules.change}. */
  change(
    name: string,
    decide: Parameters<StoredSchedules["change"]>[1],
    { set, wakes, ...call }: NonNullable<Parameters<StoredSchedules["change"]>[2]> = {},
  ): ReturnType<StoredSchedules["change"]> {
    const change = (stored: StoredSchedules, to: Call | undefined) =>
      stored.change(name, decide, { ...to, set, ...(wakes !== undefined && { wakes }) });
    return this.#at(name, change, call);
  }

  /** The server's time (epoch ms). */
  now(call?: Call): Promise<number> {
    const { queue } = this.#parts.first;
    return queue.call("ask the time of", (redis) => queue.time(redis), call);
  }

  /** All schedules, each once, in no particular order. */
  async *all(call?: Call): AsyncGenerator<NamedRecord, void, void> {
    const seen = new Set<string>();
    for (const { schedules } of await this.#parts.all(call)) {
      for await (const one of schedules.all(call)) {
        if (seen.has(one.name)) continue;
        seen.add(one.name);
        yield one;
      }
    }
  }

  /** Acts on the part where the schedule of this name belongs. */
  async #at<Result>(
    name: string,
    act: (stored: StoredSchedules, call: Call | undefined) => Promise<Result>,
    call?: Call,
  ): Promise<Result> {
    if (this.#parts.isOrdinary) {
      try {
        return await act(this.#parts.first.schedules, call);
      } catch (error) {
        // The queue has partitions, and this client knows them by now, unless it cannot follow.
        if (!isRefusedAsOld(error) || this.#parts.isOrdinary) throw error;
      }
    }
    const bucket = bucketOfKey(name);
    return await this.#routing.during(() =>
      this.#routing.at(bucket, undefined, (part, to) => act(part.schedules, to), call),
    );
  }
}
