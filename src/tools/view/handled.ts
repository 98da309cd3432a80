import type { CallOptions, HandledMessage } from "../../index.ts";
import { checks } from "../../inside.ts";
import type { InspectedQueue } from "./inspector.ts";
import { inOrder, type Moment } from "./life.ts";
import { originOf } from "./sighting.ts";

/** A message that a group has handled, and where. */
export interface HandledSighting extends Omit<HandledMessage, "handledAt"> {
  readonly queue: string;
  /** The partition in which it was handled; undefined in an ordinary queue. */
  readonly partition: number | undefined;
  /** When it was acknowledged (epoch ms on the server's clock). */
  readonly handledAt: number;
}

/** What a queue remembers of a message that was handled. */
export interface HandledReport {
  /** The newest first; one for each group. */
  readonly found: readonly HandledSighting[];
  /**
   * Since when the queue remembers (epoch ms): if the message is not found, it was not handled since. Undefined if it
   * remembers nothing: `keepHandled` is off, or nothing was handled in its time.
   */
  readonly since: number | undefined;
}

/**
 * Asks a queue whether it remembers that the message with this id was handled, or the last one with this key. O(1) without
 * `keepHandled`; otherwise it reads up to 100,000 short notes per partition in steps of 40: by an id those since its
 * deadline, by a key those since the message that had it last.
 *
 * @throws {TypeError | RangeError} if `idOrKey` is neither an id nor a valid key.
 * @throws {RedisError} if Redis refuses or does not reply.
 */
export async function handledIn(
  { name: queue, inside, deadLetters }: InspectedQueue,
  idOrKey: string,
  call?: CallOptions,
): Promise<HandledReport> {
  checks.checkIdOrKey(idOrKey);
  const found: HandledSighting[] = [];
  if (deadLetters === undefined) return { found, since: undefined };
  let since: number | undefined;
  for (const part of await inside.parts(call)) {
    const remembered = await part.remembers(idOrKey, call);
    if (remembered.since === undefined) continue;
    // A part that remembers less decides what the whole queue can tell.
    since = Math.max(since ?? 0, remembered.since);
    found.push(...remembered.found.map((one) => ({ queue, partition: part.label, ...one })));
  }
  return { found: found.toSorted((a, b) => b.handledAt - a.handledAt), since };
}

/** The life of a message that was handled, as far as it is remembered. */
export function lifeOfHandled(handled: HandledSighting): Moment[] {
  const { id, key, group, handledAt, attempt, duration, host, pid } = handled;
  const { offeredAt } = originOf(id, key);
  const who = { ...(host !== undefined && { host }), ...(pid !== undefined && { pid }) };
  const moments: Moment[] = [
    { what: "due", at: Number(id.slice(0, id.lastIndexOf("-"))) },
    ...(duration === undefined
      ? []
      : [{ what: "taken" as const, at: handledAt - duration, attempt, group, ...who }]),
    { what: "handled", at: handledAt, attempt, group, ...who },
  ];
  return inOrder(offeredAt, moments);
}
