import { onTestFinished } from "vitest";
import type { DelayedMessages } from "../../src/delayed/delayed-messages.ts";
import type { DelaylineError } from "../../src/index.ts";
import { Parts } from "../../src/partitions/parts/parts.ts";
import type { Queue } from "../../src/queue/queue.ts";
import type { Group } from "../../src/reliable/group/group.ts";
import { ReliableMessages } from "../../src/reliable/reliable-messages.ts";
import { newServer } from "./server.ts";

/** The parts of a reliable queue, as a client makes them. Nothing moves or consumes its messages. */
export interface ReliableParts {
  readonly parts: Parts;
  readonly queue: Queue;
  readonly delayed: DelayedMessages;
  /** Delayed and retrying ones. The group is there already. */
  readonly messages: ReliableMessages;
  /** The errors reported so far. */
  readonly errors: readonly DelaylineError[];
}

/** Makes the parts; their connections end with the test. */
export function newReliableParts(name: string): ReliableParts {
  const errors: DelaylineError[] = [];
  const report = (error: DelaylineError) => void errors.push(error);
  const server = newServer({ report });
  const parts = new Parts(name, [server], { elements: "addresses", isPartitioned: false });
  const { queue, delayed } = parts.first;
  queue.follow("stream");
  const messages = new ReliableMessages({ made: () => undefined } as unknown as Group, queue);
  onTestFinished(() => server.connections.close());
  return { parts, queue, delayed, messages, errors };
}
