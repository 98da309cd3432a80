import type { Inspector } from "../inspector.ts";
import type { PartitionRow, WholeQueueRow } from "./history.ts";
import type { Sample } from "./sampler.ts";

/** How long homes are reused (ms). */
const FRESH_FOR = 10_000;

/** Where a partition is, and which consumer holds it. */
interface Home {
  readonly name: string;
  readonly node: string | undefined;
  readonly holder: string | undefined;
}

/** One queue in detail: its numbers, and the homes of its partitions. Looking up homes takes a few more commands. */
export class QueueView {
  readonly #inspector: Inspector;
  readonly #homes = new Map<string, { at: number; homes: Promise<Map<number, Home>> }>();

  constructor(inspector: Inspector) {
    this.#inspector = inspector;
  }

  /** Completes a sample with the homes of the partitions. Leaves homes undefined if they cannot be read. */
  async show(name: string, { row, stats }: Sample): Promise<WholeQueueRow> {
    if (stats === undefined || stats.perPartition.length === 0) return { ...row, perPartition: [] };
    const homes = await this.#homesOf(name).catch(() => new Map<number, Home>());
    const perPartition = stats.perPartition.map((numbers): PartitionRow => {
      const { node, holder, name: partName } = homes.get(numbers.partition) ?? UNKNOWN_HOME;
      return { ...numbers, name: partName, node, holder };
    });
    return { ...row, perPartition };
  }

  async #homesOf(name: string): Promise<Map<number, Home>> {
    const now = Date.now();
    for (const [other, { at }] of this.#homes) {
      if (now - at > FRESH_FOR) this.#homes.delete(other);
    }
    const known = this.#homes.get(name);
    if (known !== undefined) return await known.homes;
    const homes = this.#readHomes(name);
    this.#homes.set(name, { at: now, homes });
    return await homes;
  }

  async #readHomes(name: string): Promise<Map<number, Home>> {
    const partitions = await this.#inspector.line.partitions(name);
    return new Map(partitions.map((partition) => [partition.partition, partition]));
  }
}

const UNKNOWN_HOME = { name: undefined, node: undefined, holder: undefined };
