import type { Call } from "../queue/call.ts";
import { isMessageId } from "../queue/message/message.ts";
import type { FoundMessage, Revocations, Revoking } from "../reliable/revocations.ts";
import type { Parts } from "./parts/parts.ts";
import { isRefusedByFact } from "./parts/refusal.ts";
import { destinationOf, formatFact, ORDINARY, sidesOf, type Fact } from "./ring/fact.ts";
import { bucketOfId, type Routing } from "./routing/routing.ts";

/**
 * Revokes messages of a partitioned queue; {@link Revocations} are those of one part.
 *
 * A delivered message stays in its partition when their number changes, and one that is delayed, retrying or ready migrates.
 * So unless the number has never changed, all are asked: while it changes, first the partitions that messages leave, then
 * those where they arrive, with what was on its way in between.
 */
export class AllRevocations implements Revoking {
  readonly #parts: Parts;
  readonly #routing: Routing;

  constructor(parts: Parts, routing: Routing) {
    this.#parts = parts;
    this.#routing = routing;
  }

  revoke(idOrKey: string, reason: string, call?: Call): Promise<FoundMessage> {
    return this.#everywhere(idOrKey, (one, to) => one.revoke(idOrKey, reason, to), call);
  }

  stage(idOrKey: string, call?: Call): Promise<FoundMessage> {
    return this.#everywhere(idOrKey, (one, to) => one.stage(idOrKey, to), call);
  }

  #everywhere(
    idOrKey: string,
    look: (one: Revocations, call: Call | undefined) => Promise<FoundMessage>,
    call: Call | undefined,
  ): Promise<FoundMessage> {
    return this.#routing.during(async () => {
      const own = call && { signal: call.signal };
      const found: FoundMessage[] = [];
      const lookAt = async (partitions: readonly number[], knownFact?: string) => {
        const to = knownFact === undefined ? own : { ...own, knownFact };
        const looks = partitions.map((one) => look(this.#parts.at(one).revocations, to));
        found.push(...(await Promise.all(looks)));
      };
      const { following } = this.#parts;
      let fact = following.fact ?? (await following.known(call));
      for (;;) {
        const home = this.#homeOf(fact, idOrKey, call);
        try {
          if (home !== undefined) {
            await lookAt([home], formatFact(fact));
            return merged(found);
          }
          await this.#lookAround(fact, lookAt, own);
        } catch (error) {
          if (!isRefusedByFact(error)) throw error;
          fact = await following.newerThan(fact, error, own);
          continue;
        }
        // No script has checked the fact: messages may have moved to a partition that was not searched.
        const now = await following.ask(own);
        if (now.epoch === fact.epoch) return merged(found);
        fact = now;
      }
    });
  }

  /** The only partition in which the message can be; undefined if it may be in several. */
  #homeOf(fact: Fact, idOrKey: string, call: Call | undefined): number | undefined {
    if (fact.epoch > 1 || fact.state !== "stable" || this.#routing.isLeavingOrdinary)
      return undefined;
    const bucket = isMessageId(idOrKey) ? bucketOfId(idOrKey) : call?.bucket;
    return bucket === undefined ? undefined : destinationOf(fact, bucket);
  }

  async #lookAround(
    fact: Fact,
    lookAt: (partitions: readonly number[]) => Promise<void>,
    call: Call | undefined,
  ): Promise<void> {
    const { leaving, arriving } = sidesOf(fact);
    const sources = this.#routing.isLeavingOrdinary ? [ORDINARY, ...leaving] : leaving;
    await lookAt(sources);
    const { migration } = this.#routing;
    await Promise.all(sources.map((source) => migration.finish(fact, source, call)));
    await lookAt(arriving);
  }
}

/** Merges the finds of several parts. Looks that change nothing find a migrating message twice. */
function merged(found: readonly FoundMessage[]): FoundMessage {
  const places = new Map<string, FoundMessage["places"][number]>();
  for (const place of found.flatMap((one) => one.places)) {
    places.set(`${place.address.toString("hex")} ${place.stage} ${place.group ?? ""}`, place);
  }
  const isRunning = async (call?: Call) => {
    const flags = await Promise.all(found.map((one) => one.isRunning(call)));
    return flags.includes(true);
  };
  const handled = places.size > 0 ? [] : found.flatMap(({ handledAt }) => handledAt ?? []);
  const handledAt = handled.length > 0 ? Math.max(...handled) : undefined;
  return { places: [...places.values()], handledAt, isRunning };
}
