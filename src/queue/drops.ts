import { DROP_FIELDS, unpackDrop, type Drop } from "../lua/places/drops.ts";
import type { Call } from "./call.ts";
import { isMessageId, messageIdAt } from "./message/message.ts";
import type { Queue } from "./queue.ts";

export type { Drop } from "../lua/places/drops.ts";

/**
 * The last time that a message was dropped when it was due, by its id or business key; undefined if it was not among the
 * last 1,000 that were. Reads these: 100 kB at most, for keys of usual length.
 */
export async function dropOf(
  queue: Queue,
  idOrKey: string,
  call?: Call,
): Promise<Drop | undefined> {
  const values = await queue.call(
    "look into",
    (redis, { dropped }) => redis.hmgetBuffer(dropped, ...DROP_FIELDS),
    call,
  );
  const drops = values.flatMap((value) => (value && unpackDrop(value)) ?? []);
  const isIt = isMessageId(idOrKey)
    ? ({ address }: Drop) => messageIdAt(address) === idOrKey
    : ({ key }: Drop) => key === idOrKey;
  return drops.filter(isIt).reduce<Drop | undefined>(later, undefined);
}

function later(one: Drop | undefined, other: Drop): Drop {
  return one !== undefined && one.at > other.at ? one : other;
}
