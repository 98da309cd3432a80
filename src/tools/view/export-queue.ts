import { randomUUID } from "node:crypto";
import type { CallOptions } from "../../index.ts";
import type { InsidePart } from "../../inside.ts";
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
 * the messages that wait for their turn, the other delayed ones by deadline, retries, messages that are ready or in
 * flight, dead letters, and the quarantine. Moves and takes nothing.
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
  const { onUnknown = () => {}, ...call } = options;
  const { name, partitions, stats, deadLetters, inside, messages } = queue;
  const parts = await inside.parts(call);
  const groups = new Set<string>();
  for (const part of deadLetters === undefined ? [] : parts) {
    for (const group of await part.contents.groups(call)) groups.add(group);
  }
  const flow = await messages.flow.get(call);
  yield {
    delayline: 1,
    export: randomUUID(),
    queue: name,
    kind: deadLetters === undefined ? "plain" : "reliable",
    partitions,
    groups: [...groups],
    ...(flow !== undefined && { flow }),
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
  part: InsidePart,
  isReliable: boolean,
  onUnknown: () => void,
  call: CallOptions,
): AsyncGenerator<MessageRecord, void, void> {
  const { label: partition, contents } = part;
  const origin = { queue: name, partition };
  for await (const found of part.delayed(call, onUnknown)) {
    const seen = sightDelayed(origin, found);
    if (seen !== undefined) yield recordOf(seen);
  }
  if (isReliable) {
    for await (const one of contents.retries("", call)) yield recordOf(sight(origin, one));
    for await (const one of contents.stream("", call)) yield recordOf(sight(origin, one));
  }
  for await (const bytes of part.elements("ready", call)) yield listRecord("listed", bytes);
  if (isReliable) {
    for await (const one of contents.letters("", call)) yield recordOf(sight(origin, one));
  }
  for (const list of ["quarantine", "unreadable"] as const) {
    for await (const bytes of part.elements(list, call)) yield listRecord(list, bytes);
  }
}
