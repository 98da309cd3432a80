import type { Delayline } from "../client/delayline.ts";
import type { DelayedQueue } from "../delayed/delayed-queue.ts";
import type { ConsumerOptions, QueueOptions } from "../queue/options.ts";
import type { BlockingQueue } from "../ready/blocking-queue.ts";
import type { ReliableQueueOptions } from "../reliable/reliable-options.ts";
import type { ReliableQueue } from "../reliable/reliable-queue.ts";

/**
 * A queue that a module uses, and the kind of its handle: `"delayed"` as of `getDelayedQueue`, `"blocking"` as of
 * `getBlockingQueue`, `"reliable"` as of `getReliableQueue`.
 */
export type QueueRegistration =
  | Registration<"delayed", QueueOptions<any>>
  | Registration<"blocking", ConsumerOptions<any>>
  | Registration<"reliable", ReliableQueueOptions<any>>;

/** What a handle of a queue is for. */
export type QueueKind = QueueRegistration["kind"];

interface Registration<Kind extends string, Options> {
  readonly name: string;
  readonly kind: Kind;
  /** Those of the handle. What is left out is taken from the client's options. */
  readonly options?: Options;
}

/** @throws what opening the queue throws. */
export function openQueue(
  line: Delayline,
  { name, kind, options }: QueueRegistration,
): DelayedQueue<any> | BlockingQueue<any> | ReliableQueue<any> {
  switch (kind) {
    case "delayed":
      return line.getDelayedQueue(name, options);
    case "blocking":
      return line.getBlockingQueue(name, options);
    case "reliable":
      return line.getReliableQueue(name, options);
    default: {
      const got = JSON.stringify(kind);
      throw new TypeError(
        `kind of a queue must be "delayed", "blocking" or "reliable", got ${got} for queue "${String(name)}"`,
      );
    }
  }
}
