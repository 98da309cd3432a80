import type { PutReply } from "../lua/exchanges/putting.ts";
import { asTarget, PUT_ARGS } from "../lua/exchanges/putting.ts";
import type { Call } from "./call.ts";
import { createId } from "./message/message.ts";
import type { Queue } from "./queue.ts";
import { slotOfKey } from "./slot.ts";
import {
  delayOf,
  deadlineOf,
  memberOf,
  resultOf,
  type Offering,
  type OfferResult,
} from "./offering.ts";

/*
 * Offers that are made in the same step as something else: the script of another move puts them into their queue. So they go
 * one by one with what they follow, and not in the batch of a turn's offers.
 */

/** A message that lands: it has its id, the same in each attempt. */
export type Landing = Offering & { readonly sentAs: { id?: Buffer } };

/** Where messages land: in a queue, or in one partition of it. */
export interface Ground {
  readonly queue: Queue;
  /** Of a partition of another queue than the script's: the fact by which it was chosen, which the script checks there. */
  readonly knownFact?: string | undefined;
}

/** A queue in which messages of another queue's step land. */
export interface Grounds {
  /**
   * Calls `act` with where these messages land, once they have their ids; again, if Redis refuses it there because of the fact.
   *
   * @throws {TypeError} if one script cannot put all of them there.
   */
  land<Result>(
    landings: readonly Landing[],
    act: (ground: Ground) => Promise<Result>,
    call?: Call,
  ): Promise<Result>;
}

/** What follows a message in the same step: the messages, and the queue that they go to. */
export interface NextStep {
  readonly landings: readonly Landing[];
  /** Undefined for the queue of the message that they follow. */
  readonly to: Grounds | undefined;
}

/** Gives messages their ids, in their order. */
export async function identify(
  queue: Queue,
  landings: readonly Landing[],
  call?: Call,
): Promise<void> {
  queue.isUsed = true;
  const ask = () => queue.call("ask for the time of", (redis) => queue.time(redis), call);
  await queue.clock.ready(ask);
  for (const { sentAs, hash } of landings) sentAs.id ??= createId(queue.clock.nextStamp(), hash);
}

/** The columns by which a script puts a message. */
export function putRow(landing: Landing) {
  const { due, key = "", maxWait = "", sentAs } = landing;
  const member = memberOf(landing, sentAs.id as Buffer);
  return { member, delay: delayOf(due), deadline: deadlineOf(due), newKey: key, maxWait };
}

/** The arguments of a script that puts messages there. */
export function putArgs({
  queue,
  knownFact = "",
}: Ground): Readonly<Record<(typeof PUT_ARGS)[number], string | number>> {
  const { elements } = queue.layout;
  return {
    toChannel: queue.keys.channel,
    toElements: elements,
    toFact: knownFact,
    toPartition: queue.partition,
  };
}

/** The keys of a script that puts messages there, beside its own. */
export function putKeys({ queue }: Ground): Readonly<Record<`to${string}`, string>> {
  return asTarget(queue.keys);
}

/** What became of messages that landed. Counts those that are new. */
export function landed(
  { queue }: Ground,
  landings: readonly Landing[],
  results: PutReply["results"],
): OfferResult[] {
  return landings.map(({ sentAs }, i) => {
    const result = resultOf(results[i] as PutReply["results"][number], sentAs.id as Buffer);
    if (result.outcome !== "existing") queue.counters.offered++;
    return result;
  });
}

/**
 * Checks whether one script can take a message out of a queue and put others into another one.
 *
 * @throws {TypeError} if not: the script runs on one server, and in a Cluster in one slot.
 */
export function checkWithin(from: Queue, { queue: to }: Ground): void {
  if (to === from) return;
  const why = "one script writes to both";
  if (to.server !== from.server) {
    throw new TypeError(
      `to must be opened by the same client, and on the same Redis server as queue "${from.name}": ${why}; got queue "${to.name}"`,
    );
  }
  if (!from.server.isCluster) return;
  const prefix = from.server.connections.commands.options.keyPrefix ?? "";
  const [own, other] = [prefix + from.keys.timeouts, prefix + to.keys.timeouts];
  if (slotOfKey(own) === slotOfKey(other)) return;
  const tag = own.slice(own.indexOf("{"), own.indexOf("}") + 1);
  throw new TypeError(
    `to must be in the same slot of the Cluster as queue "${from.name}", so its name needs the hash tag ${tag}: ${why}; got queue "${to.name}"`,
  );
}
