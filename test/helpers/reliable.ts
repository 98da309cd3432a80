import { onTestFinished } from "vitest";
import { DelayedMessages } from "../../src/delayed/delayed-messages.ts";
import type { DelaylineError } from "../../src/index.ts";
import { Queue } from "../../src/queue/queue.ts";
import { newServer } from "./server.ts";

/** The parts of a reliable queue, as a client makes them. Nothing moves or consumes its messages. */
export interface ReliableParts {
  readonly queue: Queue;
  readonly delayed: DelayedMessages;
  /** The errors reported so far. */
  readonly errors: readonly DelaylineError[];
}

/** Makes the parts; their connections end with the test. */
export function newReliableParts(name: string): ReliableParts {
  const errors: DelaylineError[] = [];
  const report = (error: DelaylineError) => void errors.push(error);
  const server = newServer({ report });
  const queue = new Queue(name, { elements: "addresses", into: "stream" }, server);
  const delayed = new DelayedMessages(queue);
  onTestFinished(() => server.connections.close());
  return { queue, delayed, errors };
}
