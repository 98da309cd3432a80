import { randomUUID } from "node:crypto";
import { DeadlineOrder } from "../../delayed/deadline-order.ts";
import { checkCall, type Call, type CallOptions } from "../../queue/call.ts";
import { elementsOf } from "../../queue/list-elements.ts";
import type { Part } from "../../partitions/parts/part.ts";
import { partsOf } from "../../handles/queue-handle.ts";
import { Contents } from "../../reliable/contents.ts";
import type { InspectedQueue } from "./inspector.ts";
import {
  listRecord,
  recordOf,
  type ExportEnd,
  type ExportHead,
  type MessageRecord,
} from "./record.ts";
import { sight, sightDelayed } from "./sighting.ts";

/** Options of {@link exportQueue}. */
export interface ExportOptions extends CallOptions {
  /** Called for each delayed member of unknown layout. The export leaves these out. */
  readonly onUnknown?: () => void;
}

/**
 * Reads everything in a queue: the head of the export, then every message, then the end. Within a partition, reads
 * delayed messages by deadline, retries, messages that are ready or in flight, dead letters, and the quarantine. Moves
 * and takes nothing.
 *
 * Reads in bounded pages, so it is not a snapshot: a message that moves on during the export may appear twice, in
 * different states, or not at all. To export each message exactly once, pause the queue and let its handlers finish
 * first.
 *
 * @throws {RedisError} if Redis refuses or does not reply.
 */
export async function* exportQueue(
  queue: InspectedQueue,
  options: ExportOptions = {},
): AsyncGenerator<ExportHead | MessageRecord | ExportEnd, void, void> {
  const { onUnknown = () => {}, ...rest } = options;
  const call = checkCall(rest);
  const { name, partitions, stats, deadLetters, messages } = queue;
  const parts = await partsOf(messages).all(call);
  const groups = new Set<string>();
  for (const part of deadLetters === undefined ? [] : parts) {
    for (const group of await new Contents(part.queue).groups(call)) groups.add(group);
  }
  yield {
    delayline: 1,
    export: randomUUID(),
    queue: name,
    kind: deadLetters === undefined ? "plain" : "reliable",
    partitions,
    groups: [...groups],
    exportedAt: Math.floor(stats.serverTime),
  };
  let count = 0;
  for (const part of parts) {
    for await (const record of exportPart(name, part, deadLetters !== undefined, onUnknown, call)) {
      yield record;
      count++;
    }
  }
  yield { end: true, messages: count };
}

/**
 * Reads one partition, in the order in which messages pass through it: a message that moves on is more likely read
 * twice than missed.
 */
async function* exportPart(
  name: string,
  { queue, label: partition }: Part,
  isReliable: boolean,
  onUnknown: () => void,
  call?: Call,
): AsyncGenerator<MessageRecord, void, void> {
  const origin = { queue: name, partition };
  for await (const found of new DeadlineOrder(queue).members(undefined, call, onUnknown)) {
    const seen = sightDelayed(origin, found);
    if (seen !== undefined) yield recordOf(seen);
  }
  const contents = new Contents(queue);
  if (isReliable) {
    for await (const one of contents.retries("", call)) yield recordOf(sight(origin, one));
    for await (const one of contents.stream("", call)) yield recordOf(sight(origin, one));
  }
  for await (const bytes of elementsOf(queue, "ready", call)) yield listRecord("listed", bytes);
  if (isReliable) {
    for await (const one of contents.letters("", call)) yield recordOf(sight(origin, one));
  }
  for (const list of ["quarantine", "unreadable"] as const) {
    for await (const bytes of elementsOf(queue, list, call)) yield listRecord(list, bytes);
  }
}
