import { callSignal } from "../../queue/checks.ts";
import type { CallOptions } from "../../queue/options.ts";
import { placesOf } from "../../queue/queue-handle.ts";
import { Contents } from "../../reliable/contents.ts";
import type { InspectedQueue } from "./inspector.ts";

/** A consumer in a group of a reliable queue. A process has a consumer of another name in each partition. */
export interface SeenConsumer {
  readonly group: string;
  readonly name: string;
  /** The number of the partition; undefined in an ordinary queue. */
  readonly partition: number | undefined;
  /** Milliseconds since Redis last heard from it. */
  readonly idle: number;
  /** How many messages it holds. */
  readonly inFlight: number;
}

/**
 * Lists the consumers of all groups of a reliable queue, including dead ones until they are removed. Empty for a plain
 * queue. O(number of consumers); runs one script per group and partition.
 *
 * @throws {RedisError} if Redis refuses or does not reply.
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
