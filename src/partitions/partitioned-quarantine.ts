import type { CallOptions } from "../queue/call.ts";
import { checkWhole } from "../queue/checks.ts";
import { Quarantine } from "../queue/quarantine.ts";
import type { Parts } from "./parts/parts.ts";

/** The quarantine of a partitioned queue: the quarantines of all its partitions, one after another. */
export class PartitionedQuarantine extends Quarantine {
  readonly #parts: Parts;

  /** @internal */
  constructor(parts: Parts) {
    super(parts.first.queue);
    this.#parts = parts;
  }

  override async size(options?: CallOptions): Promise<number> {
    return await this.#parts.sum(({ quarantine }) => quarantine.size(options), options);
  }

  override async *[Symbol.asyncIterator](): AsyncGenerator<Buffer, void, void> {
    for (const { quarantine } of await this.#parts.all()) yield* quarantine;
  }

  override async requeue(limit?: number, options?: CallOptions): Promise<number> {
    if (limit !== undefined) checkWhole("limit", limit, 0, Number.MAX_SAFE_INTEGER);
    let moved = 0;
    for (const { quarantine } of await this.#parts.all(options)) {
      moved += await quarantine.requeue(limit === undefined ? undefined : limit - moved, options);
    }
    return moved;
  }

  override async clear(options?: CallOptions): Promise<number> {
    return await this.#parts.sum(({ quarantine }) => quarantine.clear(options), options);
  }
}
