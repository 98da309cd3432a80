import { packTrailer } from "../../queue/message/trailer.ts";
import { callSignal } from "../../queue/checks.ts";
import type { CallOptions } from "../../queue/options.ts";
import { placesOf } from "../../queue/queue-handle.ts";
import { Contents, type Content } from "../../reliable/contents.ts";
import type { InspectedQueue } from "./inspector.ts";
import { sight, sightMessage, type MessageState, type Sighting } from "./sighting.ts";

/**
 * Lists the messages of a queue in one state: delayed ones by deadline, others partition by partition in the order in
 * which Redis stores them. Leaves out the ready messages of a plain queue, which have no ids. Reads in bounded pages,
 * so it is not a snapshot.
 *
 * @throws {RedisError} if Redis refuses or does not reply.
 */
export async function* messagesIn(
  { name, messages, deadLetters }: InspectedQueue,
  state: MessageState,
  options?: CallOptions,
): AsyncGenerator<Sighting, void, void> {
  const signal = callSignal(options);
  if (state === "delayed") {
    for await (const { payload, ...message } of messages.soonest(undefined, { signal })) {
      const { key = "", headers = {} } = message;
      const trailer = packTrailer({ key, headers });
      const spot = { queue: name, partition: undefined };
      yield sightMessage(spot, { ...message, payload: Buffer.from(payload), trailer });
    }
    return;
  }
  if (deadLetters === undefined) return;
  for (const { partition, queue } of await placesOf(messages).all(signal)) {
    const contents = new Contents(queue);
    const found: AsyncIterable<Content> =
      state === "retrying"
        ? contents.retries("", signal)
        : state === "dead"
          ? contents.letters("", signal)
          : contents.stream("", signal);
    for await (const content of found) {
      if (content.state === state) yield sight({ queue: name, partition }, content);
    }
  }
}
