import type { Call } from "../queue/call.ts";
import type { Place, PlacesFace } from "../queue/places.ts";
import { destinationOf, formatFact, type Fact } from "./ring/fact.ts";
import type { Parts } from "./parts/parts.ts";

/** The places of a partitioned queue: one for each partition. */
export class PartitionedPlaces implements PlacesFace {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  async all(call?: Call): Promise<readonly Place[]> {
    const fact = await this.#parts.fresh(call);
    return this.#parts.active.map((partition) => this.#at(partition, fact));
  }

  async of(bucket: number, call?: Call): Promise<Place> {
    const fact = this.#parts.fact ?? (await this.#parts.known(call));
    return this.#at(destinationOf(fact, bucket), fact);
  }

  #at(partition: number, fact: Fact): Place {
    const { queue } = this.#parts.at(partition);
    return { partition, queue, knownFact: formatFact(fact) };
  }
}
