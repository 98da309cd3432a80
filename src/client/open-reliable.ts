import { Payloads } from "../queue/payloads.ts";
import { Consuming } from "../reliable/consuming/consuming.ts";
import { DeadLetters } from "../handles/dead-letters.ts";
import type { ReliableSettings } from "../handles/reliable-options.ts";
import { ReliableQueue } from "../handles/reliable-queue.ts";
import type { OpenQueue } from "./open-queue.ts";

/**
 * Makes a handle of a reliable queue. From now on this client moves the queue's due messages into its stream.
 *
 * @throws {TypeError} if the group is open with other settings.
 */
export function openReliable<T>(open: OpenQueue, settings: ReliableSettings<T>): ReliableQueue<T> {
  const { group, messages } = open.openGroup(settings.group);
  const payloads = new Payloads(open.queue, settings.queue);
  const exclusive = settings.exclusive ? open.exclusive : undefined;
  return new ReliableQueue(open, messages, payloads, {
    group: settings.group.group,
    deadLetters: new DeadLetters(open.parts, payloads),
    consuming: new Consuming(open, group, payloads, settings, exclusive),
  });
}
