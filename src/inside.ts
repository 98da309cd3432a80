/**
 * The door through which the tools (`src/tools`) reach what users of the package do not: what is in each part of a queue,
 * the servers behind a client, and what lies in Redis under which name. Everything else they take from `index.ts`.
 */
import type { Cluster, Redis } from "ioredis";
import { queuesOf, serversOf, type Delayline } from "./client/delayline.ts";
import { DeadlineOrder } from "./delayed/deadline-order.ts";
import { Lookup } from "./delayed/lookup.ts";
import { ASKS, PACES } from "./delayed/transfer/stand-by.ts";
import { handledMessage, type HandledMessage } from "./handles/handled-message.ts";
import { partsOf, type QueueHandle } from "./handles/queue-handle.ts";
import type { QueueStats } from "./observe/queue-stats.ts";
import { MEMBER_TIMEOUT } from "./partitions/parts/member.ts";
import { LATE } from "./partitions/parts/members.ts";
import type { Part } from "./partitions/parts/part.ts";
import type { Fact } from "./partitions/ring/fact.ts";
import type { Activity, Deed } from "./queue/activity.ts";
import { Arrivals } from "./queue/arrivals.ts";
import type { Call } from "./queue/call.ts";
import type { Drop } from "./queue/drops.ts";
import type { QueueKeys } from "./queue/keys.ts";
import { elementsOf } from "./queue/list-elements.ts";
import { MAX_FAILURES } from "./queue/message/failed-attempt.ts";
import {
  clientSettings,
  MAX_PARTITIONS,
  queueSettings,
  type DelaylineOptions,
} from "./queue/options.ts";
import { QuarantineElements } from "./queue/quarantine-elements.ts";
import { Queue } from "./queue/queue.ts";
import { serverTime } from "./queue/server-time.ts";
import { unchangedAmong } from "./queue/unchanged.ts";
import { callWithin } from "./redis/call.ts";
import { isCluster, type RedisClient } from "./redis/client.ts";
import type { Server } from "./redis/server.ts";
import { Contents } from "./reliable/contents.ts";
import { Handled, MOST_HANDLED } from "./reliable/handled.ts";
import { Letters } from "./reliable/letters.ts";

// Words and measures, in which tools speak as the library does.
export { NO_NUMBERS, NUMBERS, PAUSED, SHOWN, valueOf } from "./nouns/numbers.ts";
export { PLACES, type DuePlace, type Place, type Verb } from "./nouns/places.ts";
export { durationIn } from "./time/duration.ts";
export { LAST_DATE } from "./time/last-date.ts";
export { networkTime } from "./time/runtime.ts";
export { sleepForNetwork } from "./time/sleep.ts";
export { optionFor, suggest } from "./words/did-you-mean.ts";

// What options and bytes mean.
export { resolveCodec } from "./codecs/built-in.ts";
export { stringifyJson } from "./codecs/json-text.ts";
export * as arrivals from "./queue/arrivals.ts";
export * as checks from "./queue/checks.ts";
export { hasLanes } from "./queue/flow.ts";
export { checkedHeaders } from "./queue/message/headers.ts";
export * as ids from "./queue/message/message.ts";
export * as trailers from "./queue/message/trailer.ts";

// Where a queue lies in Redis, and what stands there.
export * as layout from "./queue/keys.ts";
export * as facts from "./partitions/ring/fact.ts";
export * as members from "./partitions/parts/member.ts";
export { partitionName } from "./partitions/ring/ring.ts";
export * as consumerNames from "./reliable/group/consumer-name.ts";
export * as past from "./queue/history.ts";
export { occurrenceKey, plannedTick } from "./schedules/occurrences.ts";

// Why Redis refuses.
export { causeOf, type Cause } from "./cause.ts";
export { messageOf, replyOf } from "./failure.ts";

export type { Activity } from "./queue/activity.ts";
export type { Drop } from "./queue/drops.ts";
export type { Content } from "./reliable/contents.ts";
export * from "./reliable/letter-filter.ts";
export {
  added,
  letterDeed,
  NO_CHANGE,
  type LetterChange,
  type LetterHead,
} from "./reliable/letters.ts";
export type { RedisClient } from "./redis/client.ts";

/** Bounds and signs of the library that tools judge by. Durations are in milliseconds. */
export const LIMITS = {
  /** The most partitions of a queue. */
  partitions: MAX_PARTITIONS,
  /** The most failed attempts that a message carries. */
  failures: MAX_FAILURES,
  /** The most handled messages that a part of a queue remembers. */
  handled: MOST_HANDLED,
  /** Without a sign of life for so long, a process is no longer a member of a queue; or is late with one. */
  memberTimeout: MEMBER_TIMEOUT,
  memberIsLate: LATE,
  /** What the sign of a transfer task begins with that asks conditions. */
  asks: ASKS,
  /** The same of one that keeps the queue's rate. */
  paces: PACES,
} as const;

/** @throws {TypeError | RangeError} if an option that a tool passes on to its client is not legal. */
export function checkClientOptions(options: DelaylineOptions): void {
  clientSettings(options);
  queueSettings({}, options);
}

/** Returns the inside of the queue of a handle. */
export function insideOf(handle: QueueHandle): InsideQueue {
  return new InsideQueue(handle);
}

/** A queue as the list of its parts. */
export class InsideQueue {
  readonly #handle: QueueHandle;

  constructor(handle: QueueHandle) {
    this.#handle = handle;
  }

  /** The ordinary queue, or its partitions. */
  async parts(call?: Call): Promise<InsidePart[]> {
    const parts = await partsOf(this.#handle).all(call);
    return parts.map((part) => new InsidePart(part));
  }

  /** The fact about its partitions; undefined for an ordinary queue. */
  async fact(call?: Call): Promise<Fact | undefined> {
    return await partsOf(this.#handle).following.current(call);
  }

  /** What was done to the queue, the newest first: at most 200 entries for each of its parts. */
  async activity(call?: Call): Promise<Activity[]> {
    return await partsOf(this.#handle).activity.read(call);
  }

  /** The last time that this message was dropped when it was due; undefined if the queue does not remember that. */
  async dropOf(idOrKey: string, call?: Call): Promise<Drop | undefined> {
    return await partsOf(this.#handle).activity.dropOf(idOrKey, call);
  }

  /** Notes something in the log. Never rejects. */
  async note(deed: Deed): Promise<void> {
    await partsOf(this.#handle).activity.note(deed);
  }

  /** Where messages of a bucket that were elsewhere arrive, and the name of that part. `source` names the origin. */
  async arrivals(
    bucket: number,
    source: string,
    call?: Call,
  ): Promise<{ readonly name: string; readonly arrivals: Arrivals }> {
    const destination = await partsOf(this.#handle).of(bucket, call);
    return { name: destination.queue.name, arrivals: new Arrivals(destination, source) };
  }
}

/** What one part of a queue remembers of a message that was handled. */
export interface Remembered {
  /** Since when it remembers (epoch ms); undefined if it remembers nothing. */
  readonly since: number | undefined;
  /** The newest first, one for each group, each with the instant (epoch ms) at which it was acknowledged. */
  readonly found: readonly (Omit<HandledMessage, "handledAt"> & { readonly handledAt: number })[];
}

/** One part of a queue: what is there, place by place. Looking moves and takes nothing. */
export class InsidePart {
  /** The number of the partition; undefined for an ordinary queue, -1 while that is a part beside others. */
  readonly label: number | undefined;
  /** Delayed and retrying messages by id or key. */
  readonly lookup: Lookup;
  /** What is retrying, ready, in flight or dead in a reliable queue. */
  readonly contents: Contents;
  /** The dead letters, to count and to choose. */
  readonly letters: Letters;
  readonly quarantine: QuarantineElements;
  readonly #queue: Queue;

  constructor({ label, queue }: Part) {
    this.label = label;
    this.lookup = new Lookup(queue);
    this.contents = new Contents(queue);
    this.letters = new Letters(queue);
    this.quarantine = new QuarantineElements(queue);
    this.#queue = queue;
  }

  /** The delayed messages by deadline. Calls `onUnknown` for each member of an unknown layout, and leaves it out. */
  delayed(call?: Call, onUnknown?: () => void): ReturnType<DeadlineOrder["members"]> {
    return new DeadlineOrder(this.#queue).members(undefined, call, onUnknown);
  }

  /** The elements of one of its LISTs. */
  elements(list: Parameters<typeof elementsOf>[1], call?: Call): ReturnType<typeof elementsOf> {
    return elementsOf(this.#queue, list, call);
  }

  /** What it remembers of the message with this id, or of the last one with this key; O(N) in what it remembers. */
  async remembers(idOrKey: string, call?: Call): Promise<Remembered> {
    const handled = new Handled(this.#queue);
    const { since } = await handled.range(call);
    const notes = since === undefined ? [] : await handled.of(idOrKey, call);
    const found = notes.map((note) => ({ ...handledMessage(note), handledAt: note.handledAt }));
    return { since, found };
  }
}

/** Returns what a client has open: its servers, and looks at the numbers of many queues in few commands. */
export function insideClient(line: Delayline): InsideClient {
  return new InsideClient(line);
}

export class InsideClient {
  readonly #line: Delayline;

  constructor(line: Delayline) {
    this.#line = line;
  }

  /** Each server that the client's options name; a queue without partitions is on the first. */
  get servers(): readonly [InsideServer, ...InsideServer[]] {
    const [first, ...others] = serversOf(this.#line);
    return [new InsideServer(first), ...others.map((server) => new InsideServer(server))];
  }

  /**
   * Reads the numbers of a queue, in one command with those of up to `most` others that are read at the same time: that
   * costs both sides less, and takes 10 ms longer when there are fewer.
   */
  async stats(name: string, most: number): Promise<QueueStats> {
    return await queuesOf(this.#line).stats(name, { together: most });
  }

  /**
   * Returns those of the queues without partitions whose numbers are as they were read before, in commands for `most`
   * queues each: next to no work for this process. A queue that cannot be read is not among them. On a Cluster, none is.
   *
   * @throws {UnansweredError} if Redis does not reply.
   */
  async unchanged(
    before: Iterable<readonly [string, QueueStats]>,
    most: number,
  ): Promise<string[]> {
    const [server] = this.servers;
    if (server.isCluster) return [];
    return await server.ask((redis) => unchangedAmong(redis, before, most));
  }
}

/** A server or a Cluster that a client has open. Calls have the time limit of the client's. */
export class InsideServer {
  readonly #server: Server;

  constructor(server: Server) {
    this.#server = server;
  }

  get isCluster(): boolean {
    return this.#server.isCluster;
  }

  /** The connection for calls. */
  get client(): RedisClient {
    return this.#server.connections.commands;
  }

  /** The same of a single server; undefined for a Cluster. */
  get redis(): Redis | undefined {
    const { commands } = this.#server.connections;
    return isCluster(commands) ? undefined : commands;
  }

  /** The client of a Cluster; undefined for a single server. */
  get cluster(): Cluster | undefined {
    const { commands } = this.#server.connections;
    return isCluster(commands) ? commands : undefined;
  }

  /** Sends a command to the server, or to the node of the Cluster that serves its key; again after some failures. */
  ask<Reply>(send: (redis: RedisClient) => Promise<Reply>, call?: Call): Promise<Reply> {
    const { connections, expiries } = this.#server;
    return connections.call("commands", { expiries, signal: call?.signal }, send);
  }

  /** Bounds the time of a call that is sent once, on any connection. */
  within<Reply>(send: () => Promise<Reply>, call?: Call): Promise<Reply> {
    const { expiries } = this.#server;
    return callWithin({ expiries, signal: call?.signal }, async (wait) => {
      wait.begin();
      return await send();
    });
  }

  /** The time (epoch ms) of the server that holds these keys. */
  time(keys: QueueKeys, call?: Call): Promise<number> {
    return this.ask((redis) => serverTime(redis, keys), call);
  }

  /** Those of the business keys that delayed or retrying messages of an ordinary queue, or of a partition, hold. */
  async held(name: string, keys: readonly string[], call?: Call): Promise<string[]> {
    const queue = new Queue(name, { elements: "addresses", into: "list" }, this.#server);
    return await new Lookup(queue).heldOf(keys, call);
  }
}
