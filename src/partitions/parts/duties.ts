import { movers } from "../ring/shares.ts";
import type { Parts } from "./parts.ts";

/**
 * Which parts this client transfers, and how eagerly: two processes are on duty to move the due messages of each part;
 * the others only sweep it. An ordinary queue is transferred by every process.
 */
export class Duties {
  readonly #parts: Parts;
  /** Whether this client moves due messages. */
  isTransferring = false;

  constructor(parts: Parts) {
    this.#parts = parts;
    parts.onChange(() => this.#assign());
  }

  /** Starts to transfer due messages. */
  start(): void {
    this.#parts.following.attend({ moves: true });
    if (this.isTransferring) return;
    this.isTransferring = true;
    this.#assign();
  }

  /** Assigns no more duties. The parts' tasks end with them. */
  stop(): void {
    this.isTransferring = false;
  }

  #assign(): void {
    if (!this.isTransferring) return;
    const { active, first, following } = this.#parts;
    const { fact, isOrdinary, members, self } = following;
    if (fact === undefined) {
      // With partitions, the fact comes first.
      if (isOrdinary) first.startTransfer();
      return;
    }
    const names = members.filter(({ roles }) => roles.moves).map(({ name }) => name);
    for (const part of active) {
      part.startTransfer();
      // Before the first sign of life no mover is known, so this process transfers alone.
      const onDuty = names.length === 0 ? [self] : movers(names, part.partition + 1);
      if (!onDuty.includes(self)) part.setDuty("off");
      else part.setDuty(onDuty.length === 1 ? "alone" : "shared");
      part.setSuspended(fact.state === "holding");
    }
  }
}
