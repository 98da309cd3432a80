import type { Inspector } from "../../inspect/inspector.ts";
import type { PartitionRow, QueueRow } from "./history.ts";
import type { Sample } from "./sampler.ts";

/** How long places are reused (ms). */
const FRESH_FOR = 10_000;

/** Where a partition is, and which consumer holds it. */
interface Place {
  readonly name: string;
  readonly node: string | undefined;
  readonly holder: string | undefined;
}

/** One queue in detail: its numbers, and the places of its partitions. Looking up places takes a few more commands. */
export class QueueView {
  readonly #inspector: Inspector;
  readonly #places = new Map<string, { at: number; places: Promise<Map<number, Place>> }>();

  constructor(inspector: Inspector) {
    this.#inspector = inspector;
  }

  /** Completes a sample with the places of the partitions. Leaves places undefined if they cannot be read. */
  async show(name: string, { row, stats }: Sample): Promise<QueueRow> {
    if (stats === undefined || stats.perPartition.length === 0) return { ...row, perPartition: [] };
    const places = await this.#placesOf(name).catch(() => new Map<number, Place>());
    const perPartition = stats.perPartition.map((numbers): PartitionRow => {
      const { node, holder, name: partName } = places.get(numbers.partition) ?? UNKNOWN_PLACE;
      return { ...numbers, name: partName, node, holder };
    });
    return { ...row, perPartition };
  }

  async #placesOf(name: string): Promise<Map<number, Place>> {
    const now = Date.now();
    for (const [other, { at }] of this.#places) {
      if (now - at > FRESH_FOR) this.#places.delete(other);
    }
    const known = this.#places.get(name);
    if (known !== undefined) return await known.places;
    const places = this.#readPlaces(name);
    this.#places.set(name, { at: now, places });
    return await places;
  }

  async #readPlaces(name: string): Promise<Map<number, Place>> {
    const partitions = await this.#inspector.line.partitions(name);
    return new Map(partitions.map((partition) => [partition.partition, partition]));
  }
}

const UNKNOWN_PLACE = { name: undefined, node: undefined, holder: undefined };
