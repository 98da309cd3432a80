import type { DelayedQueue, Delayline, ReliableQueue } from "../../src/index.ts";
import type { SiteAddress } from "../fault/partitions/site-address.ts";
import type { Queue } from "../../scripts/matrix/cells.ts";

/** How many messages a consumer handles at once, of a queue that is not exclusive. */
export const CONCURRENCY = 8;

/** Milliseconds after which the messages of a dead consumer go to another one. */
export const LEASE = 2000;

/** Of so many messages one is large. */
export const LARGE = 400;

/** A queue of a run, and where it is. */
export interface Target {
  readonly address: SiteAddress;
  readonly queue: Queue;
  readonly name: string;
  readonly partitions: number;
  /** The number of the first message. */
  readonly first: number;
  /** When the ticks of a scheduled queue are counted from (epoch ms). */
  readonly since: number;
}

/** What a process of a run is to do. */
export interface Task extends Target {
  readonly role: "produce" | "consume";
  /** How payloads begin, so that the wire can recognise them. */
  readonly mark: "p" | "r";
  /** The number of a producer's first message. */
  readonly firstOwn: number;
  /** Milliseconds by which delays are longer, to outlast an outage. */
  readonly moreDelay: number;
  /** The size of each {@link LARGE}th payload, if it is larger than others. */
  readonly largeBytes: number;
}

/** What a process reports. See `History`. */
export type Note =
  | {
      readonly what: "offer";
      readonly n: number;
      readonly key: string;
      readonly sentAt: number;
      readonly delay: number;
    }
  | {
      readonly what: "acknowledged";
      readonly n: number;
      readonly at: number;
      readonly deadline: number;
    }
  | {
      readonly what: "rejected";
      readonly n: number;
      readonly effect: "none" | "unknown";
    }
  | {
      /** The message is not wanted any more: it has been sent to Redis, or Redis has acknowledged it. */
      readonly what: "forbid" | "forbidden";
      readonly n: number;
      readonly at: number;
    }
  | {
      readonly what: "start";
      readonly n: number;
      readonly attempt: number;
      readonly fence: number;
      readonly startedAt: number;
    }
  | {
      readonly what: "done";
      readonly n: number;
      readonly startedAt: number;
      readonly at: number;
    }
  | {
      readonly what: "stall";
      readonly from: number;
      readonly to: number;
    };

/** Whether a queue has no partitions. */
export function isWhole(queue: Queue): boolean {
  return queue !== "partitioned" && queue !== "exclusive";
}

/** The HASH that says which messages of a conditional queue are not wanted any more, by their numbers. */
export function unwantedOf({ name }: Pick<Target, "name">): string {
  return `{${name}}:unwanted`;
}

export function openDelayed(line: Delayline, { name }: Target): DelayedQueue<string> {
  return line.getDelayedQueue<string>(name, { codec: "string" });
}

export function openReliable(
  line: Delayline,
  { name, queue, partitions }: Target,
): ReliableQueue<string> {
  const settings = {
    codec: "string",
    leaseTimeout: LEASE,
    retry: [100],
    maxAttempts: 1000,
  } as const;
  if (isWhole(queue)) return line.getReliableQueue<string>(name, settings);
  const own = queue === "exclusive" ? { exclusive: true, strict: true } : {};
  return line.getReliableQueue<string>(name, { ...settings, partitions, ...own });
}
