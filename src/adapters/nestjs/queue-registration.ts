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
  /** The connection, as `forRoot` names it. Defaults to the one without a name. */
  readonly connection?: string;
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
 * Injects the client of a connection, or of the one without a name. The class is the token of the latter, so a parameter
 * of type `Delayline` needs no decorator where metadata is emitted.
 */
export function InjectDelayline(connection?: string): ParameterDecorator & PropertyDecorator {
  return Inject(getDelaylineToken(connection));
}

/** The token that {@link InjectDelayline} injects by. */
export function getDelaylineToken(connection?: string): typeof Delayline | string {
  return connection === undefined ? Delayline : `delayline connection "${connection}"`;
}

/** Which handle of a queue is meant. */
export interface QueueChoice {
  /** Required if the module has registered several handles of the queue. */
  readonly kind?: QueueKind;
  /** The connection, as `forRoot` names it. Defaults to the one without a name. */
  readonly connection?: string;
}

/**
 * Injects a queue that the module has registered.
 *
 * @param choice the kind, or kind and connection. The kind is required if the module has registered several handles of
 * the queue, the connection if it has a name.
 */
export function InjectQueue(
  name: string,
  choice?: QueueKind | QueueChoice,
): ParameterDecorator & PropertyDecorator {
  return Inject(getQueueToken(name, choice));
}

/** The token that {@link InjectQueue} injects by: for factories, and for replacing a queue in a test. */
export function getQueueToken(name: string, choice: QueueKind | QueueChoice = {}): string {
  const { kind, connection } = typeof choice === "string" ? { kind: choice } : choice;
  const queue =
    kind === undefined ? `delayline queue "${name}"` : `delayline ${kind} queue "${name}"`;
  return connection === undefined ? queue : `${queue} of connection "${connection}"`;
}
