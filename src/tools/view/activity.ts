import type { CallOptions, MessageId } from "../../index.ts";
import { ids, type Activity, type Drop } from "../../inside.ts";
import type { InspectedQueue } from "./inspector.ts";
import { inOrder, type Moment } from "./life.ts";
import { originOf } from "./sighting.ts";
import { formatCount } from "./words.js";

/** A message that was dropped when it was due, and where. */
export interface DroppedSighting {
  readonly queue: string;
  readonly id: MessageId;
  readonly key: string | undefined;
  /** When it was dropped (epoch ms on the server's clock). */
  readonly droppedAt: number;
  readonly reason: Drop["reason"];
  /** The same in words. */
  readonly why: string;
}

/** Asks a queue whether it remembers that the message with this id, or the last one with this key, was dropped when it was due. */
export async function droppedIn(
  { name: queue, inside }: InspectedQueue,
  idOrKey: string,
  call?: CallOptions,
): Promise<DroppedSighting | undefined> {
  const drop = await inside.dropOf(idOrKey, call);
  if (drop === undefined) return undefined;
  const { address, key, at, reason } = drop;
  const id = ids.messageIdAt(address);
  return { queue, id, key: key || undefined, droppedAt: at, reason, why: WHY[reason] };
}

const WHY: Readonly<Record<Drop["reason"], string>> = {
  onlyIf: "the condition of onlyIf did not hold",
  deliverWithin: "it was later than deliverWithin allows",
  overlap: "another run of its schedule was ready or in flight",
};

/** The life of a message that was dropped, as far as it is remembered. */
export function lifeOfDropped({ id, key, droppedAt, why }: DroppedSighting): Moment[] {
  const due = Number(id.slice(0, id.lastIndexOf("-")));
  return inOrder(originOf(id, key).offeredAt, [
    { what: "due", at: due },
    { what: "dropped", at: droppedAt, reason: why },
  ]);
}

/** What was done to a queue, in words. */
export function wordsOf({ what, count = 0, detail = "" }: Activity): string {
  return WORDS[what](count, detail);
}

const WORDS: Readonly<Record<Activity["what"], (count: number, detail: string) => string>> = {
  paused: (_, why) => (why === "" ? "paused" : `paused: ${why}`),
  resumed: () => "resumed",
  cleared: (count) => `cleared: ${formatCount(count, "delayed message")} dropped`,
  cancelled: (count, prefix) =>
    `cancelled ${formatCount(count, "message")}${prefix === "" ? "" : `: prefix ${prefix}`}`,
  revoked: (count, which) => `revoked ${formatCount(count, "message")}: ${which}`,
  redriven: (count, which) => `redrove ${formatCount(count, "dead letter")}: ${which}`,
  "letters removed": (count, which) => `removed ${formatCount(count, "dead letter")}: ${which}`,
  requeued: (count) => `requeued ${formatCount(count, "payload")} from the quarantine`,
  "quarantine cleared": (count) => `cleared the quarantine of ${formatCount(count, "message")}`,
  declared: (count, set) => `declared ${set}: ${formatCount(count, "schedule")} changed`,
  "schedule paused": (_, name) => `paused schedule ${name}`,
  "schedule resumed": (_, name) => `resumed schedule ${name}`,
  "schedule removed": (_, name) => `removed schedule ${name}`,
  "partitions set": (_, number) => `set the partitions to ${number}`,
  "made plain": () => "made plain",
  "flow set": (_, rate) => `set the flow to ${rate}`,
  "flow cleared": () => "cleared the flow",
  "lane pinned": (_, what) => `pinned lane ${what}`,
  "lane unpinned": (_, name) => `unpinned lane ${name}`,
  restored: (_, to) => `Redis went back to an older copy${to === "" ? "" : `, ${to}`}`,
};
