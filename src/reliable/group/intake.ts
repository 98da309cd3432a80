import { QuarantineError } from "../../errors.ts";
import type { Entry } from "../../lua/fragments/entry.ts";
import type { Queue } from "../../queue/queue.ts";
import type { Held } from "./held.ts";
import type { HeldDeliveries } from "./held-deliveries.ts";
import type { Settlements } from "./settlements.ts";

/** An entry that was read; one in a foreign format as its fields and values. */
export type Read = Entry | { readonly entryId: string; readonly fields: readonly Buffer[] };

/**
 * Sorts the entries that a read returned.
 *
 * - A message for this group, or for all groups, is held from now on.
 * - A message that is held back goes back, and becomes a retry that is due when its pause is over. It was in flight for
 *   an exclusive consumer in strict order, and somebody who is not exclusive has read it. An exclusive consumer holds
 *   it, and waits.
 * - A message for another group is acknowledged: Redis delivers each entry to every group.
 * - An entry in a foreign format goes to the quarantine, is reported and acknowledged. If that fails, it stays in
 *   flight: a later beat finds it as a stranger and sets it aside; see `LeaseKeeper`.
 */
export class Intake {
  readonly #queue: Queue;
  readonly #group: string;
  readonly #held: HeldDeliveries;
  readonly #settlements: Settlements;
  readonly #isExclusive: boolean;

  constructor(
    queue: Queue,
    { group, isExclusive }: { readonly group: string; readonly isExclusive: boolean },
    held: HeldDeliveries,
    settlements: Settlements,
  ) {
    this.#queue = queue;
    this.#group = group;
    this.#isExclusive = isExclusive;
    this.#held = held;
    this.#settlements = settlements;
  }

  /** Returns the deliveries that are held now. */
  accept(read: readonly Read[]): Held[] {
    const taken: Held[] = [];
    for (const entry of read) {
      if ("fields" in entry) void this.#setAside(entry.entryId, entry.fields);
      else if (entry.group !== undefined && entry.group !== this.#group) {
        void this.#skip(entry.entryId);
      } else if (entry.heldBackUntil !== undefined && !this.#isExclusive) {
        void this.#giveBack(entry.entryId);
      } else taken.push(this.#held.add(entry));
    }
    return taken;
  }

  async #setAside(entryId: string, fields: readonly Buffer[]): Promise<void> {
    const isKept = await this.#queue.quarantine(Buffer.concat(fields), "unreadable");
    if (!isKept) return;
    this.#queue.report(new QuarantineError(this.#queue.name, 1));
    await this.#skip(entryId);
  }

  /** Gives back an entry. If that fails, a later beat finds it as a stranger, and gives it back; see `LeaseKeeper`. */
  async #giveBack(entryId: string): Promise<void> {
    await this.#settlements.giveBackStranger(entryId).catch(() => {});
  }

  /** Acknowledges an entry. If that fails, a later beat finds the entry as a stranger; see `LeaseKeeper`. */
  async #skip(entryId: string): Promise<void> {
    await this.#settlements.skip(entryId).catch(() => {});
  }
}
