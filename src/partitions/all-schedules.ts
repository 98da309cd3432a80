import type { Call } from "../queue/call.ts";
import type { Codes } from "../schedules/recipes.ts";
import type {
  Found,
  ListedRecord,
  NotedSet,
  SetContent,
  StoredSchedules,
} from "../schedules/stored-schedules.ts";
import type { Parts } from "./parts/parts.ts";
import { isRefusedByFact } from "./parts/refusal.ts";
import type { Routing } from "./routing/routing.ts";

/** Migrates messages to where they belong; see {@link Routing.withSchedule}. */
type Bring = (ids: readonly string[]) => Promise<void>;

/**
 * The schedules of a queue, whichever parts it has; {@link StoredSchedules} are those of one part. A schedule is in the
 * partition of its name's bucket, and so are its messages.
 */
export class AllSchedules {
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
    { set, ...call }: NonNullable<Parameters<StoredSchedules["change"]>[2]> = {},
  ): ReturnType<StoredSchedules["change"]> {
    const change = (stored: StoredSchedules, to: Call | undefined, bring?: Bring) =>
      stored.change(name, decide, { ...to, set, bring });
    return this.#at(name, change, call);
  }

  /** The revisions of all sets that were declared last. */
  async revisions(call?: Call): Promise<Map<string, SetContent>> {
    const all = await this.#parts.onAll(({ schedules }) => schedules.revisions(call), call);
    const latest = new Map<string, SetContent>();
    for (const one of all.flat()) {
      if ((latest.get(one.set)?.revision ?? -1) < one.revision) latest.set(one.set, one);
    }
    return latest;
  }

  /**
   * Notes the revision of a set wherever its schedules may be; returns the last one that was noted anywhere, which is later
   * if this one is outdated, and whether this one was noted with another content anywhere.
   */
  async raise(set: SetContent, call?: Call): Promise<NotedSet> {
    const raise = (stored: StoredSchedules, to: Call | undefined) => stored.raise(set, to);
    const everywhere = async () =>
      await this.#routing.everywhere(
        undefined,
        (part, to) => raise(part.schedules, to),
        ({ latest, isConflict }) => latest > set.revision || isConflict,
        call,
      );
    const noted = await this.#on(async (stored) => [await raise(stored, call)], everywhere);
    return {
      latest: Math.max(...noted.map(({ latest }) => latest)),
      isConflict: noted.some(({ isConflict }) => isConflict),
    };
  }

  /** The server's time (epoch ms). */
  now(call?: Call): Promise<number> {
    const { queue } = this.#parts.first;
    return queue.call("ask the time of", (redis) => queue.time(redis), call);
  }

  /** Those of the ticks of a schedule, by their keys, of which a message is delayed or retrying. */
  present(name: string, keys: readonly string[], call?: Call): Promise<Set<string>> {
    return this.#at(name, (stored, to) => stored.present(keys, to), call);
  }

  /**
   * All schedules as {@link all}, a page at a time, with the keys of those of its ticks of which a message is delayed or
   * retrying.
   */
  async *pages(
    keysOf: (one: ListedRecord) => readonly string[],
    call?: Call,
  ): AsyncGenerator<{ readonly page: ListedRecord[]; readonly present: Set<string> }, void, void> {
    const seen = new Set<string>();
    for (const { schedules } of await this.#parts.all(call)) {
      for await (const all of schedules.pages(call)) {
        const page = all.filter(({ name }) => !seen.has(name));
        for (const { name } of page) seen.add(name);
        yield { page, present: await schedules.present(page.flatMap(keysOf), call) };
      }
    }
  }

  /** All schedules, each once, in no particular order. */
  async *all(call?: Call): AsyncGenerator<ListedRecord, void, void> {
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
  #at<Result>(
    name: string,
    act: (stored: StoredSchedules, call?: Call, bring?: Bring) => Promise<Result>,
    call?: Call,
  ): Promise<Result> {
    const inPartition = () =>
      this.#routing.withSchedule(name, (part, ...to) => act(part.schedules, ...to), call);
    return this.#on((stored) => act(stored, call), inPartition);
  }

  /** Acts on an ordinary queue; or otherwise, if it has partitions. */
  async #on<Result>(
    act: (stored: StoredSchedules) => Promise<Result>,
    inPartitions: () => Promise<Result>,
  ): Promise<Result> {
    if (this.#parts.following.isOrdinary) {
      try {
        return await act(this.#parts.first.schedules);
      } catch (error) {
        // The queue was given partitions. This client knows them by now, unless it cannot follow.
        if (!isRefusedByFact(error) || this.#parts.following.isOrdinary) throw error;
      }
    }
    return await this.#routing.during(inPartitions);
  }
}
