import { Inject } from "@nestjs/common";
import { Delayline } from "../../client/delayline.ts";
import type { QueueKind } from "./queue-registration.ts";

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
