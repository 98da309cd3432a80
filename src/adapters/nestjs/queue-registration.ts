import { Inject } from "@nestjs/common";
import { Delayline } from "../../client/delayline.ts";
import type { DelayedQueue } from "../../handles/delayed-queue.ts";
import { nameOf, type Named } from "../../queue/keys.ts";
import type { QueueOptions } from "../../queue/options.ts";
import type { BlockingQueue } from "../../handles/blocking-queue.ts";
import type { ReliableQueueOptions } from "../../handles/reliable-options.ts";
import type { PlainQueue } from "../../handles/plain-queue.ts";
import type { ReliableQueue } from "../../handles/reliable-queue.ts";

/**
 * A queue that a module uses, and the kind of its handle: `"delayed"` (`getDelayedQueue`), `"blocking"`
 * (`getBlockingQueue`), `"reliable"` (`getReliableQueue`), or `"plain"`, both sides in one (`open`). A definition
 * (`defineQueue`) is one, too.
 */
export type QueueRegistration =
  | Registration<"plain", QueueOptions<any>>
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
): DelayedQueue<any> | BlockingQueue<any> | PlainQueue<any> | ReliableQueue<any> {
  switch (kind) {
    case "delayed":
      return line.getDelayedQueue(name, options);
    case "blocking":
      return line.getBlockingQueue(name, options);
    case "plain":
    case "reliable": {
      // Each group of a queue may have options of its own; a definition has one set for all.
      const group = kind === "reliable" ? options?.group : undefined;
      if (group !== undefined) return line.getReliableQueue(name, options);
      const { transfer, ...own } = options ?? {};
      return line.open({ name, kind, options: own }, transfer === undefined ? {} : { transfer });
    }
    default: {
      const got = JSON.stringify(kind);
      throw new TypeError(
        `kind of a queue must be "plain", "delayed", "blocking" or "reliable", got ${got} for queue "${String(name)}"`,
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
 * Injects a queue that the module has registered, by its name or its definition.
 *
 * @param choice the kind, or kind and connection. The kind is required if the module has registered several handles of
 * the queue, the connection if it has a name.
 */
export function InjectQueue(
  queue: Named,
  choice?: QueueKind | QueueChoice,
): ParameterDecorator & PropertyDecorator {
  return Inject(getQueueToken(queue, choice));
}

/** The token that {@link InjectQueue} injects by: for factories, and for replacing a queue in a test. */
export function getQueueToken(queue: Named, choice: QueueKind | QueueChoice = {}): string {
  const name = nameOf(queue);
  const { kind, connection } = typeof choice === "string" ? { kind: choice } : choice;
  const handle =
    kind === undefined ? `delayline queue "${name}"` : `delayline ${kind} queue "${name}"`;
  return connection === undefined ? handle : `${handle} of connection "${connection}"`;
}
