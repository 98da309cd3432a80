import type { DecodeError, DelaylineError } from "../../errors.ts";
import { messageIdAt } from "../../queue/message/message.ts";
import type { Counters } from "../../observe/counters.ts";
import { takes, tracedQuietly, type TakeEvent } from "../../observe/events.ts";
import type { Payloads } from "../../queue/payloads.ts";
import { unpackTrailer, type Trailer } from "../../queue/message/trailer.ts";
import type { WaitOptions } from "../../run/waiters.ts";
import type { GroupFace } from "../group/group.ts";
import type { Held } from "../group/held.ts";
import { Delivery, deliveredMessageOf, type Content, type Delivered } from "./delivery.ts";
import type { RetryLadder } from "./retry-ladder.ts";
import { Settler } from "./settler.ts";

/** Takes messages for one handle, and makes deliveries of their bytes. */
export class Deliverer<T> {
  /** Settles the deliveries. */
  readonly settler: Settler;
  readonly #group: GroupFace;
  readonly #payloads: Payloads<T>;
  readonly #report: (error: DelaylineError) => void;
  readonly #counters: Counters;

  constructor(
    group: GroupFace,
    payloads: Payloads<T>,
    retry: RetryLadder,
    host: {
      readonly report: (error: DelaylineError) => void;
      /** Called when the function given as `retry` has failed. */
      readonly warn: (error: unknown) => void;
      readonly counters: Counters;
    },
  ) {
    this.settler = new Settler(group.settings.group, retry, host);
    this.#group = group;
    this.#payloads = payloads;
    this.#report = host.report;
    this.#counters = host.counters;
  }

  /**
   * Takes up to `max` messages as soon as there is one; none if none came in time. A message that the codec cannot
   * decode becomes a dead letter, and the wait goes on.
   */
  async take(max: number, { signal, timeout }: WaitOptions): Promise<Delivered<T>[]> {
    const startedAt = timeout === Infinity ? 0 : performance.now();
    let left = timeout;
    for (;;) {
      const taken = await this.#group.take(max, { signal, timeout: left });
      const delivered = taken.flatMap((held) => this.open(held));
      if (delivered.length > 0 || taken.length === 0) return delivered;
      left = Math.max(0, timeout - (performance.now() - startedAt));
    }
  }

  /** As {@link take}, for calls of the user; also publishes a {@link TakeEvent}. */
  async takeForUser(max: number, wait: WaitOptions): Promise<Delivered<T>[]> {
    if (!takes.hasSubscribers) return await this.take(max, wait);
    const event: TakeEvent = { queue: this.settler.queue, group: this.settler.group };
    return await tracedQuietly(takes, event, async () => {
      const taken = await this.take(max, wait);
      event.messages = taken.map(deliveredMessageOf);
      return taken;
    });
  }

  /** As {@link takeForUser}, for deliveries that must be settled or extended within the visibility timeout. */
  async takeByHand(max: number, wait: WaitOptions): Promise<Delivery<T>[]> {
    const taken = await this.takeForUser(max, wait);
    for (const { held } of taken) {
      held.isGiven = true;
      held.group.limit(held);
    }
    return taken.map(({ delivery }) => delivery);
  }

  /** Makes a delivery; none, but a dead letter, if the codec cannot decode the message. */
  open(held: Held): Delivered<T>[] {
    const { address, payload, trailer } = held.entry;
    try {
      const { key, headers = {} } = trailer.length > 0 ? unpackTrailer(trailer) : BARE;
      const content: Content<T> = {
        id: messageIdAt(address),
        payload: this.#payloads.decode(payload),
        key,
        headers,
      };
      this.#counters.taken++;
      held.takenAt = held.group.now();
      this.#counters.backlogLateness.record(held.takenAt - held.readyAt);
      return [{ held, delivery: new Delivery(content, held, this.settler) }];
    } catch (error) {
      this.#report(error as DecodeError);
      void this.settler.bury(held, (error as DecodeError).message);
      return [];
    }
  }
}

/** The trailer of most messages: nothing. One object for all saves an allocation each. */
const BARE: Pick<Trailer, "key" | "headers"> = { key: undefined, headers: undefined };
