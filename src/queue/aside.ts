import { createHash, randomBytes } from "node:crypto";
import { countAside, removeAside, requeueAside } from "../lua/ready/quarantine.ts";
import { asNumber } from "../lua/reply.ts";
import { run } from "../lua/script.ts";
import type { Call } from "./call.ts";
import type { QueueKeys } from "./keys.ts";
import type { Queue } from "./queue.ts";

// Changes to single elements of the quarantine, which have no ids: a place names one by its position and its digest.

/** The LISTs of the quarantine: payloads, and whole members of an unknown layout. */
export type AsideList = keyof Pick<QueueKeys, "quarantine" | "unreadable">;

/** An element of a LIST. */
export interface AsidePlace {
  readonly position: number;
  /** See {@link digestOf}. */
  readonly digest: string;
  /** In bytes. */
  readonly size: number;
}

/** The SHA-1 digest of an element, in hexadecimal, as Redis computes it. */
export function digestOf(element: Uint8Array): string {
  return createHash("sha1").update(element).digest("hex");
}

/** Counts the elements that still are in these places. */
export async function countThere(
  queue: Queue,
  list: AsideList,
  places: readonly AsidePlace[],
  call?: Call,
): Promise<number> {
  let count = 0;
  for (const rows of batches(places)) {
    count += await queue.call(
      "look into the quarantine of",
      (redis, keys) => run(redis, countAside, { quarantine: keys[list] }, {}, rowsOf(rows, 0)),
      call,
    );
  }
  return count;
}

/** How many elements a LIST has; O(1). */
export async function lengthOf(queue: Queue, list: AsideList, call?: Call): Promise<number> {
  const doing = "measure the quarantine of";
  return asNumber(await queue.call(doing, (redis, keys) => redis.llen(keys[list]), call));
}

/** Makes the payloads in these places ready again, oldest first; returns how many still were there. */
export async function requeueThere(
  queue: Queue,
  places: readonly AsidePlace[],
  call?: Call,
): Promise<number> {
  let done = 0;
  for (const some of batches(places)) {
    const rows = rowsOf(some, done);
    const doing = "requeue the quarantine of";
    done += await queue.change(doing, requeueAside, { mark: newMark() }, { ...call, rows });
  }
  return done;
}

/** Removes the elements in these places for good; returns how many still were there. */
export async function removeThere(
  queue: Queue,
  list: AsideList,
  places: readonly AsidePlace[],
  call?: Call,
): Promise<number> {
  let done = 0;
  for (const some of batches(places)) {
    const rows = rowsOf(some, done);
    done += await queue.callOnce(
      "remove from the quarantine of",
      (redis, keys) =>
        run(redis, removeAside, { quarantine: keys[list] }, { mark: newMark() }, rows),
      call,
    );
  }
  return done;
}

/** What is in no queue. */
function newMark(): Buffer {
  return randomBytes(32);
}

/** The positions once `removed` elements before them have left. */
function rowsOf(places: readonly AsidePlace[], removed: number) {
  return places.map(({ position, digest }) => ({ position: position - removed, digest }));
}

/** Cuts places into batches that one script may change, in ascending order. A position is named once. */
function* batches(places: readonly AsidePlace[]): Generator<readonly AsidePlace[]> {
  let batch: AsidePlace[] = [];
  let bytes = 0;
  const byPosition = new Map(places.map((place) => [place.position, place]));
  for (const place of [...byPosition.values()].toSorted((a, b) => a.position - b.position)) {
    if (batch.length >= STEP || (batch.length > 0 && bytes + place.size > STEP_BYTES)) {
      yield batch;
      [batch, bytes] = [[], 0];
    }
    batch.push(place);
    bytes += place.size;
  }
  if (batch.length > 0) yield batch;
}

/** Elements per script, and their bytes: a few hundred microseconds of Redis's time. */
const STEP = 50;
const STEP_BYTES = 65_536;
