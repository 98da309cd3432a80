import type { Inspector } from "../../inspect/inspector.ts";
import type { PartitionRow, QueueRow } from "./row.ts";
import type { Sample } from "./sampler.ts";

/** For how long it holds where partitions are, and who holds them (ms). */
const FRESH = 10_000;

interface Place {
  readonly name: string;
  readonly node: string | undefined;
  readonly holder: string | undefined;
}

/** Adds to the numbers of a queue's partitions where they are, which takes a few commands more. */
export class QueueView {
  readonly #inspector: Inspector;
  readonly #places = new Map<string, { at: number; places: Promise<Map<number, Place>> }>();

  constructor(inspector: Inspector) {
    this.#inspector = inspector;
  }

  /** The queue as it is shown. Where its partitions are is left out if it cannot be asked. */
  async show(name: string, { row, stats }: Sample): Promise<QueueRow> {
    if (stats === undefined || stats.perPartition.length === 0) return { ...row, perPartition: [] };
    const places = await this.#placesOf(name).catch(() => new Map<number, Place>());
    const perPartition = stats.perPartition.map((numbers): PartitionRow => {
      const { node, holder, name: partName } = places.get(numbers.partition) ?? UNKNOWN;
      return { ...numbers, name: partName, node, holder };
    });
    return { ...row, perPartition };
  }

  async #placesOf(name: string): Promise<Map<number, Place>> {
    const now = Date.now();
    for (const [other, { at }] of this.#places) {
      if (now - at > FRESH) this.#places.delete(other);
    }
    const known = this.#places.get(name);
    if (known !== undefined) return await known.places;
    const places = this.#ask(name);
    this.#places.set(name, { at: now, places });
    return await places;
  }

  async #ask(name: string): Promise<Map<number, Place>> {
    const partitions = await this.#inspector.line.partitions(name);
    return new Map(partitions.map((partition) => [partition.partition, partition]));
  }
}

const UNKNOWN = { name: undefined, node: undefined, holder: undefined };
