import type { CallOptions } from "../../index.ts";
import type { InspectedQueue } from "./inspector.ts";

/** A payload without id and key: ready in a plain queue, or in the quarantine. */
export interface BarePayload {
  /** Where it is. Another payload has its position once one before it has left. */
  readonly place: string;
  /** The number of the partition; undefined in an ordinary queue. */
  readonly partition: number | undefined;
  /** From the head of its LIST, beginning with 1. */
  readonly position: number;
  /** Whether it is a whole message of an unknown layout: it can be removed, and not requeued. */
  readonly isUnreadable: boolean;
  /** In bytes. */
  readonly size: number;
  readonly bytes: Buffer;
}

/** The LISTs of bare payloads. */
const LISTS = { ready: ["ready"], quarantined: ["quarantine", "unreadable"] } as const;

/** Where bare payloads are. */
export type BareState = keyof typeof LISTS;

/** The most elements of a LIST that are read: finding one far from its ends takes Redis long. */
export const MOST_BARE = 10_000;

/**
 * Yields the payloads of a queue that have neither id nor key, partition by partition, oldest first: the first `MOST_BARE` of
 * each LIST. Reads bounded pages, so it is not a snapshot.
 *
 * @throws {RedisError} if Redis refuses or does not reply.
 */
export async function* payloadsIn(
  { inside }: InspectedQueue,
  state: BareState,
  call?: CallOptions,
): AsyncGenerator<BarePayload, void, void> {
  for (const part of await inside.parts(call)) {
    const { label: partition } = part;
    for (const list of LISTS[state]) {
      let position = 0;
      for await (const bytes of part.elements(list, call)) {
        const { length: size } = bytes;
        const words = [partition ?? "", list, position++, size, part.quarantine.digestOf(bytes)];
        const isUnreadable = list === "unreadable";
        yield { place: words.join(":"), partition, position, isUnreadable, size, bytes };
        if (position >= MOST_BARE) break;
      }
    }
  }
}

/**
 * Requeues or removes what is in these spots of the quarantine, by default all of it, or only counts what is there;
 * returns how many. Whole messages of an unknown layout are not requeued.
 *
 * @throws {RedisError} if Redis refuses or does not reply. What was done before is done.
 */
export async function changeQuarantined(
  { inside, messages }: InspectedQueue,
  change: "requeue" | "remove",
  spots: readonly string[] | undefined,
  { isDry = false, ...call }: CallOptions & { readonly isDry?: boolean } = {},
): Promise<number> {
  const { quarantine } = messages;
  if (spots === undefined && !isDry) {
    return change === "requeue"
      ? await quarantine.requeue(undefined, call)
      : await quarantine.clear(call);
  }
  const lists = change === "requeue" ? (["quarantine"] as const) : LISTS.quarantined;
  let count = 0;
  for (const { label, quarantine: there } of await inside.parts(call)) {
    for (const list of lists) {
      if (spots === undefined) {
        count += await there.size(list, call);
        continue;
      }
      const chosen = spots.flatMap((spot) => elementAt(spot, label, list) ?? []);
      if (isDry) count += await there.count(list, chosen, call);
      else if (change === "requeue") count += await there.requeue(chosen, call);
      else count += await there.remove(list, chosen, call);
    }
  }
  return count;
}

/** The element of one LIST that a spot names; undefined for a spot elsewhere, and for any other text. */
function elementAt(spot: string, partition: number | undefined, list: string) {
  const [, at, name, position, size, digest = ""] =
    /^(|-1|\d{1,3}):([a-z]+):(\d{1,5}):(\d{1,10}):([\da-f]{40})$/.exec(spot) ?? [];
  if (at !== String(partition ?? "") || name !== list) return undefined;
  return { position: Number(position), size: Number(size), digest };
}
