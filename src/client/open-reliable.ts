import { HandlerError } from "../errors.ts";
import { Payloads } from "../queue/payloads.ts";
import { Consuming } from "../reliable/consuming/consuming.ts";
import { ExclusiveConsuming } from "../reliable/consuming/exclusive-consuming.ts";
import { DeadLetters } from "../reliable/dead-letters.ts";
import { Deliverer } from "../reliable/consuming/deliverer.ts";
import type { ReliableSettings } from "../reliable/reliable-options.ts";
import { ReliableQueue } from "../reliable/reliable-queue.ts";
import type { OpenQueue } from "./open-queue.ts";

/**
 * Makes a handle of a reliable queue. From now on this client moves the queue's due messages into its stream.
 *
 * @throws {TypeError} if the group is open with other settings.
 */
export function openReliable<T>(open: OpenQueue, settings: ReliableSettings<T>): ReliableQueue<T> {
  const { queue, consumers, joinTakes, counters } = open;
  const { name, report } = queue;
  const { group, messages } = open.openGroup(settings.group);
  const payloads = new Payloads(queue, settings.queue);
  const warn = (error: unknown) => report(new HandlerError(name, error, "retry"));
  const deliverer = new Deliverer(group, payloads, settings.retry, { report, warn, counters });
  const host = { consumers, joinTakes, report };
  return new ReliableQueue(open, messages, payloads, {
    group: settings.group.group,
    deadLetters: new DeadLetters(open.parts, payloads),
    consuming: settings.exclusive
      ? new ExclusiveConsuming(
          name,
          open.exclusiveGroup(settings.group, settings.strict),
          deliverer,
          host,
        )
      : new Consuming(name, group, deliverer, host),
  });
}
