import { callSignal } from "../queue/checks.ts";
import type { CallOptions } from "../queue/options.ts";
import { placesOf } from "../queue/queue-handle.ts";
import { Contents } from "../reliable/contents.ts";
import type { InspectedQueue } from "./inspector.ts";

/** A consumer of a group of a reliable queue. One process has a consumer in each partition, by another name. */
export interface SeenConsumer {
  readonly group: string;
  readonly name: string;
  /** The partition; undefined in an ordinary queue. */
  readonly partition: number | undefined;
  /** For how many milliseconds Redis has not heard of it. */
  readonly idle: number;
  /** How many messages it has in hand. */
  readonly inFlight: number;
}

/**
 * The consumers of a reliable queue, of all its groups, the dead among them until they are struck out. None of a plain
 * queue. O(number of consumers), one script for each group of each partition.
 *
 * @throws {RedisError} if Redis cannot be asked.
 */
export async function consumers(
  { messages, deadLetters }: InspectedQueue,
  options?: CallOptions,
): Promise<SeenConsumer[]> {
  const signal = callSignal(options);
  if (deadLetters === undefined) return [];
  const found: SeenConsumer[] = [];
  for (const { partition, queue } of await placesOf(messages).all(signal)) {
    const contents = new Contents(queue);
    for (const group of await contents.groups(signal)) {
      const members = await contents.consumers(group, signal);
      found.push(...members.map((member) => ({ group, partition, ...member })));
    }
  }
  return found;
}
