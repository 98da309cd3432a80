import type { Delayed, DelayedMessages, Offers } from "../delayed/delayed-messages.ts";
import type { Ready, ReadyList } from "../ready/ready-list.ts";
import type { TakingGroup } from "../reliable/consuming/consuming.ts";
import type { Group, GroupSettings } from "../reliable/group/group.ts";
import type { Revoking } from "../reliable/revocations.ts";
import { AllRevocations } from "./all-revocations.ts";
import { AllSchedules, OrdinarySchedules } from "./all-schedules.ts";
import { Messages } from "./messages.ts";
import { OrdinaryOffers } from "./ordinary-offers.ts";
import type { ActivityLog } from "./parts/activity-log.ts";
import type { Duties } from "./parts/duties.ts";
import type { Part } from "./parts/part.ts";
import type { Parts } from "./parts/parts.ts";
import type { Routing } from "./routing/routing.ts";
import { ConsumerGroup } from "./taking/consumer-group.ts";
import { ReadyMessages } from "./taking/ready-messages.ts";

/** What a {@link Reach} leads into. */
interface Within {
  readonly parts: Parts;
  readonly routing: Routing;
  readonly duties: Duties;
}

/**
 * What the handles of a queue reach: the only part of an ordinary queue itself; once it has partitions, what knows the
 * way to each of them.
 *
 * The properties change then, so a call reads them when it begins. An offer or a look that is under way ends where it
 * began, as it would in a process that hears of the partitions later. Waits that are under way go on at all parts, as
 * soon as these are known ({@link handOver}).
 */
abstract class Reach {
  /** Takes offers. */
  offers!: Offers;
  /** Finds, lists and removes what is delayed. */
  delayed!: Delayed;
  /** Declares, finds and removes schedules. */
  schedules!: AllSchedules;
  protected readonly within: Within;
  readonly #messagesOf: (part: Part) => DelayedMessages;
  #routed: Messages | undefined;

  constructor(within: Within, messagesOf: (part: Part) => DelayedMessages) {
    this.within = within;
    this.#messagesOf = messagesOf;
  }

  /** What was done to the queue. */
  get activity(): ActivityLog {
    return this.within.parts.activity;
  }

  /** To be called when the queue has become a partitioned one, and when this client begins or ends to move messages. */
  review(): void {
    const { parts, routing, duties } = this.within;
    if (parts.following.isOrdinary) {
      const own = this.#messagesOf(parts.first);
      const isEnough = duties.isTransferring && !parts.isSpread;
      this.delayed = own;
      this.offers = isEnough ? own : new OrdinaryOffers(own, parts);
      this.schedules = new OrdinarySchedules(parts, routing);
    } else {
      this.#routed ??= new Messages(parts, routing, this.#messagesOf);
      this.delayed = this.offers = this.#routed;
      this.schedules = new AllSchedules(parts, routing);
    }
  }

  /** The partitions are known: waits at the ordinary queue go on at all parts. */
  abstract handOver(): void;

  /** Ends every wait. */
  abstract stop(): Promise<void>;
}

/** What the handles of a plain queue reach. */
export class PlainReach extends Reach {
  /** Takes what is ready. */
  ready!: Ready;
  #own: ReadyList | undefined;
  #all: ReadyMessages | undefined;

  constructor(within: Within) {
    super(within, ({ delayed }) => delayed);
    this.review();
  }

  override review(): void {
    super.review();
    const { parts } = this.within;
    if (parts.following.isOrdinary) this.ready = this.#own = parts.first.ready;
    else this.ready = this.#all ??= new ReadyMessages(parts);
  }

  handOver(): void {
    this.#own?.leaveTo(this.ready);
    this.#own = undefined;
  }

  /** Resolves when no taker holds a payload of a partition that this process has stopped taking from. */
  async left(): Promise<void> {
    await this.#all?.left();
  }

  async stop(): Promise<void> {
    await this.ready.close();
  }
}

/** What the handles of one consumer group of a reliable queue reach. */
export class GroupReach extends Reach {
  /** Takes what is ready for the group. */
  group!: TakingGroup;
  /** Revokes messages, whichever groups have them. */
  revocations!: Revoking;
  readonly #settings: GroupSettings;
  #own: Group | undefined;
  #all: ConsumerGroup | undefined;

  constructor(within: Within, settings: GroupSettings) {
    super(within, (part) => part.openGroup(settings).messages);
    this.#settings = settings;
    this.review();
  }

  override review(): void {
    super.review();
    const { parts, routing } = this.within;
    if (parts.following.isOrdinary) {
      this.group = this.#own = parts.first.openGroup(this.#settings).group;
      this.revocations = parts.first.revocations;
    } else {
      this.group = this.#all ??= new ConsumerGroup(parts, this.#settings);
      this.revocations = new AllRevocations(parts, routing);
    }
  }

  handOver(): void {
    this.#own?.leaveTo(this.group);
    this.#own = undefined;
  }

  async stop(): Promise<void> {
    await this.group.stop();
  }
}
