import type {
  ExclusiveDeliveries,
  ExclusiveTake,
} from "../../reliable/consuming/exclusive-deliveries.ts";
import type { GroupSettings } from "../../reliable/group/group.ts";
import type { Exclusive } from "./exclusive.ts";
import { GroupTenure } from "./group-tenure.ts";
import type { Parts } from "../parts/parts.ts";

/** A consumer group of a partitioned reliable queue, for a handle that consumes the queue exclusively. */
export class ExclusiveGroup implements ExclusiveDeliveries {
  readonly #parts: Parts;
  readonly #settings: GroupSettings;
  readonly #isStrict: boolean;
  readonly #exclusive: Exclusive;

  constructor(parts: Parts, settings: GroupSettings, isStrict: boolean, exclusive: Exclusive) {
    this.#parts = parts;
    this.#settings = settings;
    this.#isStrict = isStrict;
    this.#exclusive = exclusive;
  }

  get refusal(): TypeError {
    return this.#exclusive.refusal;
  }

  check(): void {
    this.#parts.first.openGroup(this.#settings).group.checkTaking();
    this.#exclusive.check();
  }

  run(consume: (take: ExclusiveTake) => Promise<void>, stopping: AbortSignal): Promise<void> {
    return this.#exclusive.run(
      (part, lease) => new GroupTenure(part, lease, this.#settings, this.#isStrict, consume),
      stopping,
      this.#settings.group,
    );
  }
}
