import { createHash, randomBytes } from "node:crypto";
import {
  countQuarantined,
  removeQuarantined,
  requeueQuarantined,
} from "../lua/ready/quarantine.ts";
import { asNumber } from "../lua/reply.ts";
import { run } from "../lua/script.ts";
import type { Call } from "./call.ts";
import type { QueueKeys } from "./keys.ts";
import type { Queue } from "./queue.ts";

// Changes to single elements of the quarantine, which have no ids: a position and a digest name one.

/** The LISTs of the quarantine: payloads, and whole members of an unknown layout. */
export type QuarantineList = keyof Pick<QueueKeys, "quarantine" | "unreadable">;

/** An element of one of them, as it was seen. */
export interface QuarantineElement {
  readonly position: number;
  /** See {@link digestOf}. */
  readonly digest: string;
  /** In bytes. */
  readonly size: number;
}

/**
 * The single elements of the quarantine of an ordinary queue, or of a partition. Changes are made in batches; what was
 * done before a refusal is done.
 */
export class QuarantineElements {
  readonly #queue: Queue;

  constructor(queue: Queue) {
    this.#queue = queue;
  }

  /** See {@link digestOf}. */
  digestOf(element: Uint8Array): string {
    return digestOf(element);
  }

  /** How many elements a LIST has; O(1). */
  async size(list: QuarantineList, call?: Call): Promise<number> {
    const doing = "measure the quarantine of";
    return asNumber(await this.#queue.call(doing, (redis, keys) => redis.llen(keys[list]), call));
  }

  /** Counts those of the elements that still are there. */
  async count(
    list: QuarantineList,
    elements: readonly QuarantineElement[],
    call?: Call,
  ): Promise<number> {
    const doing = "look into the quarantine of";
    return await inBatches(elements, false, (rows) =>
      this.#queue.call(
        doing,
        (redis, keys) => run(redis, countQuarantined, { quarantine: keys[list] }, {}, rows),
        call,
      ),
    );
  }

  /** Makes these payloads ready again, oldest first; returns how many still were there. */
  async requeue(elements: readonly QuarantineElement[], call?: Call): Promise<number> {
    const doing = "requeue the quarantine of";
    return await inBatches(elements, true, (rows) =>
      this.#queue.change(doing, requeueQuarantined, { mark: newMark() }, { ...call, rows }),
    );
  }

  /** Removes these elements for good; returns how many still were there. */
  async remove(
    list: QuarantineList,
    elements: readonly QuarantineElement[],
    call?: Call,
  ): Promise<number> {
    const doing = "remove from the quarantine of";
    return await inBatches(elements, true, (rows) =>
      this.#queue.callOnce(
        doing,
        (redis, keys) =>
          run(redis, removeQuarantined, { quarantine: keys[list] }, { mark: newMark() }, rows),
        call,
      ),
    );
  }
}

/** The SHA-1 digest of an element, in hexadecimal, as Redis computes it. */
export function digestOf(element: Uint8Array): string {
  return createHash("sha1").update(element).digest("hex");
}

/** What is in no queue. */
function newMark(): Buffer {
  return randomBytes(32);
}

/**
 * Sends elements in batches; returns how many of them were still there, which `send` resolves to. If those are
 * `leaving`, the positions behind them are lower by as many.
 */
async function inBatches(
  elements: readonly QuarantineElement[],
  leaving: boolean,
  send: (
    rows: readonly { readonly position: number; readonly digest: string }[],
  ) => Promise<number>,
): Promise<number> {
  let count = 0;
  for (const batch of batches(elements)) {
    const left = leaving ? count : 0;
    count += await send(
      batch.map(({ position, digest }) => ({ position: position - left, digest })),
    );
  }
  return count;
}

/** Cuts elements into batches that one script may change, in ascending order. A position is named once. */
function* batches(elements: readonly QuarantineElement[]): Generator<readonly QuarantineElement[]> {
  let batch: QuarantineElement[] = [];
  let bytes = 0;
  const byPosition = new Map(elements.map((element) => [element.position, element]));
  for (const element of [...byPosition.values()].toSorted((a, b) => a.position - b.position)) {
    if (batch.length >= STEP || (batch.length > 0 && bytes + element.size > STEP_BYTES)) {
      yield batch;
      [batch, bytes] = [[], 0];
    }
    batch.push(element);
    bytes += element.size;
  }
  if (batch.length > 0) yield batch;
}

/** Elements per script, and their bytes: a few hundred microseconds of Redis's time. */
const STEP = 50;
const STEP_BYTES = 65_536;
