import type { FaultKind } from "../sim.ts";
import type { Call, Delivery, Moment, Offer, Story } from "./story.ts";

/** What a queue promises, as far as that differs from world to world. */
export interface Promises {
  readonly queue: string;
  /** Mixed: it becomes reliable and plain again while it is used. */
  readonly kind: "plain" | "reliable" | "mixed";
  /** The consumer groups; one without a name in a plain queue. */
  readonly groups: readonly string[];
  /** Those that begin with the next message that becomes ready (`start: "new"`). */
  readonly startNew?: readonly string[];
  /**
   * The most messages that can be on their way to one process at once. A plain queue loses these with the process.
   * Defaults to as many as its calls wait for; with partitions it may be more.
   */
  readonly capacity?: number;
  /**
   * Whether each process gets its messages in the order of their deadlines. Not so in partitions, nor if a message may
   * go back to the queue.
   */
  readonly inOrder?: boolean;
  /** Whether messages of one sequence are handled by one process at a time. */
  readonly isExclusive?: boolean;
  /** Whether each process handles messages of one sequence one at a time. */
  readonly isOrderedBy?: boolean;
  /** Whether a message that failed holds up the later ones of its sequence. */
  readonly isStrict?: boolean;
  /** Whether the offers of one process arrive in the order in which they were made. */
  readonly areOffersInTurn?: boolean;
  /** Whether a consumer that waits gets its messages as soon as they are due. */
  readonly isPunctual?: boolean;
  /** How many partitions share the rate. Defaults to 1. */
  readonly parts?: number;
  /** Whether its partitions are on several servers, of which one may fall back and the others do not. */
  readonly isSpread?: boolean;
  /** What the processes do when Redis goes back to an older copy. Defaults to reporting it. */
  readonly onRestore?: "pause" | "report";
  readonly leaseTimeout?: number;
  readonly maxAttempts?: number;
  /** The pauses of `retry`, without jitter. */
  readonly retry?: readonly number[];
  /** The milliseconds within which a call settles, beyond those for which its process stood still. */
  readonly callTimeout?: number;
  /** How many messages Redis says were dropped when they were due, by the condition that did not hold. */
  readonly dropCounts?: Readonly<Record<"onlyIf" | "deliverWithin", number>>;
  /** Codes of error events that belong to the world, such as those of its failing handlers. */
  readonly expectedTroubles?: readonly string[];
}

/** A rule returns what breaks it, one line each. */
export type Rule = (story: Story, promises: Promises) => string[];

/**
 * After these a connection is lost, or given up. A plain queue then loses what was on its way to the process, and an
 * offer may be sent again.
 */
export const LOSES_CONNECTION: readonly FaultKind[] = [
  "cut",
  "silence",
  "delay",
  "late-replies",
  "client-kill",
  "failover",
];

/** After these a consumer may have been silent for its lease timeout, or may have missed a reply. */
export const LOSES_LEASE: readonly FaultKind[] = [
  ...LOSES_CONNECTION,
  "trickle",
  "stall",
  "crash",
  "rights",
];

/**
 * How often Redis may hold a message that was offered once. An offer that is sent again is stored anew if its first copy
 * has gone meanwhile: moved, cancelled, taken or replaced.
 */
export function copiesOf(offer: Offer, story: Story): number {
  const faults = story
    .faultsOn(offer.by, LOSES_CONNECTION, offer.begun, offer.ended ?? story.end)
    .filter(({ role = "commands" }) => role === "commands");
  // Of a connection that was not cut at once, a copy may arrive when all is over.
  if (faults.every(({ kind }) => CUTS.includes(kind)) && wasThere(offer, story)) return 1;
  return 1 + faults.length;
}

const CUTS: readonly FaultKind[] = ["cut", "client-kill"];

/** Whether the message certainly waited from its first copy until its offer had ended. Then a second copy has met it. */
function wasThere(offer: Offer, story: Story): boolean {
  const { ended, args } = offer;
  if (ended === undefined || offer.outcome !== "added") return false;
  if (story.faults.some(({ kind }) => kind === "failover" || kind === "clock-step")) return false;
  const { delay = 0, instant = offer.begun.now + delay } = args as Record<string, number>;
  if (Math.min(instant, limitOf(offer, story)) <= ended.now) return false;
  return !story.calls.some(
    (call) =>
      call !== offer &&
      TAKES_AWAY.includes(call.verb) &&
      call.begun.index < ended.index &&
      (call.ended === undefined || call.ended.index > offer.begun.index) &&
      (call.verb !== "offer" || (call.args["key"] === offer.key && replaces(call as Offer))),
  );
}

/** The calls that may take away or move a delayed message. */
const TAKES_AWAY = [
  "cancel",
  "revoke",
  "reschedule",
  "promote",
  "offer",
  "dropDelayed",
  "remove",
  "clear",
  "makePlain",
];

/** Whether a failover may have undone the call. */
export function isForgotten({ begun, ended }: Call, story: Story): boolean {
  return story.faults.some(
    ({ kind, index, since }) =>
      kind === "failover" && begun.index < index && (ended === undefined || ended.at >= since),
  );
}

/**
 * Whether a failover may have undone what a process learnt at this moment. A reply of the old master may have been under
 * way for a while.
 */
export function isUndone(moment: Moment, story: Story): boolean {
  return story.faults.some(
    ({ kind, at, since, remembering }) =>
      kind === "failover" &&
      moment.at >= since &&
      // Of a restore nothing is excused that comes after it.
      moment.at <= (remembering === undefined ? at + UNDER_WAY : at + AT_ONCE),
  );
}

/** Milliseconds. */
const UNDER_WAY = 5000;
const AT_ONCE = 100;

/** Whether the message is certainly in Redis once its offer has ended. */
export function isStored(offer: Offer, story: Story): boolean {
  return offer.fate === "stored" && !isForgotten(offer, story);
}

/** Whether the message may be in Redis. */
export function mayBeStored(offer: Offer): boolean {
  return offer.fate === "stored" || offer.fate === "unknown";
}

/** Whether the call was certainly carried out, with an effect. */
export function tookEffect(call: Call, story: Story): boolean {
  return (
    call.ended !== undefined &&
    call.error === undefined &&
    !NOTHING.includes(call.answer) &&
    !isForgotten(call, story)
  );
}

/** Whether the call may have been carried out, with an effect. */
export function mayHaveTakenEffect(call: Call): boolean {
  if (call.ended === undefined) return true;
  if (call.error !== undefined) return call.effect === "unknown";
  return !NOTHING.includes(call.answer);
}

/**
 * Whether a settlement may have been carried out, or may still be: one that was refused is tried again when the handler
 * ends, or the time of the delivery is over.
 */
export function isAskedFor({ answer }: Call): boolean {
  return answer !== false;
}

/** Answers of calls that have found nothing to do. */
const NOTHING: readonly unknown[] = [false, null, 0];

/** Whether the call names this message, by its id or its key. */
export function isAbout({ args }: Call, offer: Offer, story: Story): boolean {
  const target = args["target"];
  if (typeof target !== "string") return false;
  return target === offer.key || story.offerOf(target) === offer;
}

/** The deliveries of a message to a group; in a mixed queue, all. */
export function deliveriesTo(
  group: string,
  n: number,
  story: Story,
  { kind }: Promises,
): Delivery[] {
  return story.deliveriesOf(n).filter((one) => kind === "mixed" || one.group === group);
}

/** Where a call of `revoke` or `stage` says that a message was. */
export interface Where {
  readonly stage: string;
  readonly places: readonly {
    readonly id: string;
    readonly stage: string;
    /** Undefined for all groups. */
    readonly group?: string;
    readonly attempts: number;
  }[];
  readonly hasEnded: boolean;
}

/** The places in which a call of `revoke` or `stage` has found this message. */
export function placesOf({ answer }: Call, offer: Offer, story: Story): Where["places"] {
  const { places = [] } = (answer ?? {}) as Partial<Where>;
  return places.filter(({ id }) => story.offerOf(id) === offer);
}

/** Whether a call of `revoke` may have taken this message away; of a group that is given, its part. */
export function mayHaveRevoked(call: Call, offer: Offer, story: Story, group?: string): boolean {
  if (call.verb !== "revoke" || !mayHaveTakenEffect(call)) return false;
  const { places } = (call.answer ?? {}) as Partial<Where>;
  if (places === undefined) return isAbout(call, offer, story);
  // Nobody knows the id of an offer without a result.
  const isUnknown = offer.fate !== "stored" && isAbout(call, offer, story);
  if (isUnknown && places.some(({ id }) => story.offerOf(id) === undefined)) return true;
  return placesOf(call, offer, story).some(
    (place) => group === undefined || place.group === undefined || place.group === group,
  );
}

/** Whether the message was taken from a plain queue, so that it has left Redis. */
export function isPlain({ attempt }: Delivery): boolean {
  return attempt === 0;
}

/** Whether a call about dead letters concerns this message: it is about it, or about all. */
export function mayBeAbout({ args }: Call, { n }: Offer): boolean {
  return args["about"] === undefined || args["about"] === n;
}

/** The calls that take a message away, or move it to another deadline. */
export function changesOf(offer: Offer, story: Story): Call[] {
  return story.calls.filter((call) => {
    if (call.verb === "cancel" || call.verb === "reschedule" || call.verb === "promote")
      return isAbout(call, offer, story);
    if (call.verb === "revoke") return mayHaveRevoked(call, offer, story);
    if (call.verb !== "offer" || offer.key === undefined || call === offer) return false;
    return call.args["key"] === offer.key && mayReplace(call as Offer, story);
  });
}

/** Whether an offer has taken the place of the message that held its key. */
export function replaces({ outcome }: Offer): boolean {
  return outcome === "replaced" || outcome === "updated";
}

/** Whether an offer, or a copy of it that was sent before, may have taken the place of the message that held its key. */
export function mayReplace(offer: Offer, story: Story): boolean {
  const { onDuplicate } = offer.args as { onDuplicate?: string };
  if (onDuplicate !== "replace" && onDuplicate !== "update") return false;
  return offer.fate === "unknown" || replaces(offer) || copiesOf(offer, story) > 1;
}

/**
 * The earliest instant at which the message may become ready, for a delivery at `moment`; on the server's clock.
 *
 * A new deadline counts from when the call about it has ended. Until then, either may hold.
 */
export function earliestOf(offer: Offer, story: Story, moment: Moment): number {
  const changes = story
    .callsOf("reschedule", "promote")
    .filter((call) => isAbout(call, offer, story) && call.begun.index < moment.index);
  const deadlines = [
    { begun: offer.begun, ended: offer.ended, deadline: offeredFor(offer, story), isCertain: true },
    ...changes.filter(mayHaveTakenEffect).map((call) => ({
      begun: call.begun,
      ended: call.ended,
      deadline: rescheduledTo(call),
      isCertain: tookEffect(call, story) && isSameMessage(call, offer),
    })),
  ];
  const holding = deadlines.filter(
    ({ ended }) =>
      !deadlines.some(
        (later) =>
          later.isCertain &&
          ended !== undefined &&
          later.ended !== undefined &&
          later.ended.index < moment.index &&
          later.begun.index > ended.index,
      ),
  );
  return Math.min(...holding.map(({ deadline }) => deadline));
}

/** A call by key may have met another message with that key; its answer has the id of the one that it met. */
function isSameMessage(call: Call, offer: Offer): boolean {
  const { id } = call.answer as { id: string };
  return offer.id !== undefined && id.endsWith(offer.id.slice(offer.id.indexOf("-")));
}

function offeredFor(offer: Offer, story: Story): number {
  if (offer.deadline !== undefined && copiesOf(offer, story) === 1) return offer.deadline;
  // The deadline is that of the last copy, and an earlier one may have been delivered.
  const { delay, instant, onDuplicate, maxWait } = offer.args as Record<string, number | undefined>;
  // Nobody knows which deadline it has kept.
  if (onDuplicate !== undefined && (String(onDuplicate) === "update" || maxWait !== undefined))
    return 0;
  return Math.min(instant ?? offer.begun.now + (delay ?? 0), limitOf(offer, story));
}

/** The earliest deadline to which a `maxWait` may bind a message that replaces another one (epoch ms); Infinity without one. */
export function limitOf({ key, args, ended }: Offer, story: Story): number {
  if (key === undefined || args["onDuplicate"] !== "replace") return Infinity;
  const before = [...story.offers.values()].filter(
    (other) => other.key === key && other.begun.index < (ended?.index ?? Infinity),
  );
  const waits = before.map((other) => (other.args["maxWait"] as number | undefined) ?? Infinity);
  return Math.floor(Math.min(...before.map(({ begun }) => begun.now)) + Math.min(...waits));
}

function rescheduledTo(call: Call): number {
  const answer = call.answer as { deadline: number } | undefined;
  if (answer !== undefined) return answer.deadline;
  const { delay, instant } = call.args as Record<string, number | undefined>;
  return instant ?? call.begun.now + (delay ?? 0);
}

/** Milliseconds by which two instants may differ that are the same: numbers are not finer. */
export const EXACT = 0.01;

/** Whether the message had certainly gone for good before the call began. */
export function hasLeft(
  offer: Offer,
  call: Call,
  story: Story,
  { kind, groups }: Promises,
): boolean {
  const before = call.begun.index;
  if (kind === "reliable" && groups.length > 1) return false;
  const isTaken = story
    .deliveriesOf(offer.n)
    .some((delivery) =>
      isPlain(delivery)
        ? delivery.index < before
        : delivery.settlements.some(
            (one) =>
              one.verb === "ack" &&
              tookEffect(one, story) &&
              (one.ended?.index ?? Infinity) < before,
          ),
    );
  if (isTaken) return true;
  return story
    .callsOf("cancel", "revoke")
    .some(
      (cancel) =>
        (cancel.verb === "revoke"
          ? placesOf(cancel, offer, story).length > 0
          : story.offerOf(cancel.args["target"] as string) === offer) &&
        tookEffect(cancel, story) &&
        (cancel.ended?.index ?? Infinity) < before,
    );
}

/** How long the message of a failed delivery waits at least; undefined if nobody knows. */
export function pauseAfter(
  { attempt }: Delivery,
  nack: Call | undefined,
  { retry = [] }: Promises,
): number | undefined {
  const delay = nack?.args["delay"] as number | undefined;
  return delay ?? retry[Math.min(attempt, retry.length) - 1];
}

/** Names a message in a violation. */
export function nameOf({ n, key, by }: Offer): string {
  return `message ${n}${key === undefined ? "" : ` (${key})`} of ${by}`;
}

/** Names a delivery in a violation. */
export function nameOfDelivery({ n, by, group, attempt, at }: Delivery): string {
  const which = attempt === 0 ? "" : `, attempt ${attempt}`;
  return `message ${n} at ${at} ms in ${by}${group === "" ? "" : `, group ${group}`}${which}`;
}
