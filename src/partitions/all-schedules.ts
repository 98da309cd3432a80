import type { Call } from "../queue/call.ts";
import type { Codes } from "../schedules/recipes.ts";
import type { Rule } from "../schedules/rule.ts";
import {
  checkOverlap,
  type Changed,
  type Found,
  type RecordInPage,
  type NotedSet,
  type SetContent,
  type StoredSchedules,
} from "../schedules/stored-schedules.ts";
import type { Following } from "./parts/following.ts";
import type { Parts } from "./parts/parts.ts";
import { isRefusedByFact } from "./parts/refusal.ts";
import type { Routing } from "./routing/routing.ts";

/** Acts on the schedules of one part. `bring` migrates messages to where they belong; see {@link Routing.withSchedule}. */
type Act<Result> = (
  stored: StoredSchedules,
  call?: Call,
  bring?: (ids: readonly string[]) => Promise<void>,
) => Promise<Result>;

/**
 * The schedules of a partitioned queue; {@link StoredSchedules} are those of one part. A schedule is in the partition of
 * its name's bucket, and so are its messages.
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

  /** @throws {TypeError} if the rule is none for a queue with partitions, and this queue has some, as far as known. */
  check(rule: Rule): void {
    if (!this.#parts.following.isOrdinary) checkOverlap(this.#parts.name, rule);
  }

  get(name: string, call?: Call): Promise<Found> {
    return this.at(name, (stored, to) => stored.get(name, to), call);
  }

  /** See {@link StoredSchedules.change}. */
  change(
    name: string,
    decide: Parameters<StoredSchedules["change"]>[1],
    { set, ...call }: NonNullable<Parameters<StoredSchedules["change"]>[2]> = {},
  ): Promise<Changed> {
    const change: Act<Changed> = (stored, to, bring) =>
      stored.change(name, decide, { ...to, set, bring });
    return this.at(name, change, call);
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
    const raise: Act<NotedSet> = (stored, to) => stored.raise(set, to);
    const isRefused = ({ latest, isConflict }: NotedSet) => latest > set.revision || isConflict;
    const noted = await this.everywhere(raise, isRefused, call);
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
    return this.at(name, (stored, to) => stored.present(keys, to), call);
  }

  /**
   * All schedules as {@link all}, a page at a time, with the keys of those of its ticks of which a message is delayed or
   * retrying.
   */
  async *pages(
    keysOf: (one: RecordInPage) => readonly string[],
    call?: Call,
  ): AsyncGenerator<{ readonly page: RecordInPage[]; readonly present: Set<string> }, void, void> {
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
  async *all(call?: Call): AsyncGenerator<RecordInPage, void, void> {
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
  protected at<Result>(name: string, act: Act<Result>, call?: Call): Promise<Result> {
    return this.#routing.during(() =>
      this.#routing.withSchedule(name, (part, ...to) => act(part.schedules, ...to), call),
    );
  }

  /** Acts on all parts where schedules may be; see {@link Routing.everywhere}. */
  protected everywhere<Result>(
    act: Act<Result>,
    isHit: (result: Result) => boolean,
    call?: Call,
  ): Promise<Result[]> {
    return this.#routing.during(() =>
      this.#routing.everywhere(undefined, (part, to) => act(part.schedules, to), isHit, call),
    );
  }
}

/** The schedules of an ordinary queue. A call that learns that the queue was given partitions goes on there. */
export class OrdinarySchedules extends AllSchedules {
  readonly #own: StoredSchedules;
  readonly #following: Following;

  constructor(parts: Parts, routing: Routing) {
    super(parts, routing);
    this.#own = parts.first.schedules;
    this.#following = parts.following;
  }

  protected override async at<Result>(
    name: string,
    act: Act<Result>,
    call?: Call,
  ): Promise<Result> {
    try {
      return await act(this.#own, call);
    } catch (error) {
      this.#throwUnlessLeft(error);
      return await super.at(name, act, call);
    }
  }

  protected override async everywhere<Result>(
    act: Act<Result>,
    isHit: (result: Result) => boolean,
    call?: Call,
  ): Promise<Result[]> {
    try {
      return [await act(this.#own, call)];
    } catch (error) {
      this.#throwUnlessLeft(error);
      return await super.everywhere(act, isHit, call);
    }
  }

  /** This client knows the partitions by now, unless it cannot follow. */
  #throwUnlessLeft(error: unknown): void {
    if (!isRefusedByFact(error) || this.#following.isOrdinary) throw error;
  }
}
