import { Inject } from "@nestjs/common";
import { Delayline } from "../../client/delayline.ts";
import type { DelayedQueue } from "../../handles/delayed-queue.ts";
import type { QueueOptions } from "../../queue/options.ts";
import type { BlockingQueue } from "../../handles/blocking-queue.ts";
import type { ReliableQueueOptions } from "../../handles/reliable-options.ts";
import type { ReliableQueue } from "../../handles/reliable-queue.ts";

/**
 * A queue that a module uses, and the kind of its handle: `"delayed"` (`getDelayedQueue`), `"blocking"`
 * (`getBlockingQueue`) or `"reliable"` (`getReliableQueue`).
 */
export type QueueRegistration =
  | Registration<"delayed", QueueOptions<any>>
  | Registration<"blocking", QueueOptions<any>>
  | Registration<"reliable", ReliableQueueOptions<any>>;

/** The kind of a queue's handle. */
export type QueueKind = QueueRegistration["kind"];

interface Registration<Kind extends string, Options> {
  readonly name: string;
  readonly kind: Kind;
  /** The handle's options. Options that are left out are taken from the client. */
  readonly options?: Options;
}

/** @throws {TypeError | RangeError} if the kind, the name or an option is not legal. */
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

/**
 * Injects the client. Its class is the token, so a parameter of type `Delayline` needs no decorator where metadata is
 * emitted.
 */
export function InjectDelayline(): ParameterDecorator & PropertyDecorator {
  return Inject(Delayline);
}

/**
 * Injects a queue that the module has registered.
 *
 * @param kind required if the module has registered several handles of the queue.
 */
export function InjectQueue(
  name: string,
  kind?: QueueKind,
): ParameterDecorator & PropertyDecorator {
  return Inject(getQueueToken(name, kind));
}

/** The token that {@link InjectQueue} injects by: for factories, and for replacing a queue in a test. */
export function getQueueToken(name: string, kind?: QueueKind): string {
  return kind === undefined ? `delayline queue "${name}"` : `delayline ${kind} queue "${name}"`;
}
