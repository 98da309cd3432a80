import type { DelayedMessages, Offers } from "../delayed/delayed-messages.ts";
import type { Ground, Landing } from "../queue/landing.ts";
import type { Offering, OfferResult } from "../queue/offering.ts";
import type { Call } from "../queue/call.ts";
import type { MessageId } from "../queue/message/message.ts";
import type { Part } from "./parts/part.ts";
import type { Parts } from "./parts/parts.ts";
import { slotOfKey } from "../queue/slot.ts";

/**
 * Offers to an ordinary queue, with what the part alone cannot know: a client that moves no messages asks now and then
 * whether the queue was given partitions, and on a Cluster a guard has to be in the queue's slot. A client that needs
 * neither offers to the part itself.
 */
export class OrdinaryOffers implements Offers {
  readonly #messages: DelayedMessages;
  readonly #parts: Parts;

  constructor(messages: DelayedMessages, parts: Parts) {
    this.#messages = messages;
    this.#parts = parts;
  }

  get takesHeaders(): boolean {
    return this.#messages.takesHeaders;
  }

  checkOpen(): void {
    this.#messages.checkOpen();
  }

  /** @throws {TypeError} if its guard cannot be asked. */
  offer(offering: Offering, call?: Call): Promise<OfferResult> {
    this.#parts.following.noteOffer();
    this.#checkGuard(offering);
    return this.#messages.offer(offering, call);
  }

  /** @throws {TypeError} if a guard of these offers cannot be asked. */
  async offerMany(offerings: readonly Offering[], call?: Call): Promise<OfferResult[]> {
    this.#parts.following.noteOffer();
    for (const offering of offerings) this.#checkGuard(offering);
    return await this.#messages.offerMany(offerings, call);
  }

  /** See {@link DelayedMessages.land}. */
  async land<Result>(
    landings: readonly Landing[],
    act: (ground: Ground) => Promise<Result>,
    call?: Call,
  ): Promise<Result> {
    this.#parts.following.noteOffer();
    for (const landing of landings) this.#checkGuard(landing);
    return await this.#messages.land(landings, act, call);
  }

  /** See {@link DelayedMessages.beside}. */
  async beside(
    landings: readonly Landing[],
    id?: MessageId,
    call?: Call,
  ): Promise<readonly Landing[]> {
    this.#parts.following.noteOffer();
    for (const landing of landings) this.#checkGuard(landing);
    return await this.#messages.beside(landings, id, call);
  }

  /** The node of the queue, whose script moves the messages, has to hold the user's key. */
  #checkGuard({ onlyIf }: Offering): void {
    const { first, isSpread } = this.#parts;
    if (onlyIf === undefined || !isSpread || isBeside(onlyIf.key, first)) return;
    const own = prefixOf(first) + first.queue.keys.timeouts;
    const tag = own.slice(own.indexOf("{"), own.indexOf("}") + 1);
    throw new TypeError(
      `onlyIf.key must be in the same slot as queue "${first.queue.name}", so it needs its hash tag ${tag}, got ${JSON.stringify(onlyIf.key)}`,
    );
  }
}

/** Whether a key of the user's is in the slot of a part. */
export function isBeside(key: string, part: Part): boolean {
  const prefix = prefixOf(part);
  return slotOfKey(prefix + key) === slotOfKey(prefix + part.queue.keys.timeouts);
}

function prefixOf({ queue }: Part): string {
  return queue.server.connections.commands.options.keyPrefix ?? "";
}
