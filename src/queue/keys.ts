/** A key of a queue. */
export interface KeyOfQueue {
  /** What stands before the queue's name; undefined if the key is the bare name. */
  readonly prefix: string | undefined;
  /** As `TYPE` replies, except for the channel. */
  readonly type: "zset" | "list" | "hash" | "stream" | "string" | "channel";
  /** What it holds, and when it exists, in Markdown. */
  readonly holds: string;
  /** Whether `Delayline.queues` recognises a queue by it. The others exist beside these, or for a moment. */
  readonly marksQueue?: true;
}

/**
 * The Redis keys of one queue, by their names in the code. `npm run docs` writes them into docs/project/internals.md.
 *
 * The first four names are Redisson's (3.21.1 and later), so a Java service and a Node service can share the queue. The
 * others begin with `delayline_`. All keys of a queue have the same hash tag, and so are on one Cluster node. They are
 * without the `keyPrefix`, which ioredis adds. The channel is not a key, and gets no prefix.
 */
export const KEYS = {
  timeouts: {
    prefix: "redisson_delay_queue_timeout:",
    type: "zset",
    holds: "delayed messages by deadline (epoch ms)",
    marksQueue: true,
  },
  order: {
    prefix: "redisson_delay_queue:",
    type: "list",
    holds:
      "the insertion order: for each message offered an address of 24 bytes, deadline (8) and id (16)",
  },
  ready: {
    // The bare name of the queue.
    prefix: undefined,
    type: "list",
    holds: "ready payloads, as the codec wrote them",
  },
  /** See `lua/places/ready-list.ts`. */
  listed: {
    prefix: "delayline_listed:",
    type: "string",
    holds:
      "exists while the LIST of ready messages holds any, as of the last sweep; expires 30 days after it",
    marksQueue: true,
  },
  channel: {
    prefix: "redisson_delay_queue_channel:",
    type: "channel",
    holds: 'the deadline of a message that became the head; `0` means "look now"',
  },
  compacted: {
    prefix: "delayline_compacted:",
    type: "list",
    holds: "the front part of the insertion order, while it is being compacted",
  },
  /** See `lua/delayed/offer-keyed.ts`. */
  businessKeys: {
    prefix: "delayline_keys:",
    type: "hash",
    holds:
      "business key -> address of the delayed or retrying message that holds it, outcome of its offer, instant of the first offer",
    marksQueue: true,
  },
  mover: {
    prefix: "delayline_mover:",
    type: "string",
    holds:
      "the transfer task that last moved messages, `@`, and when (epoch us); expires after 30 days, and its task deletes it when it closes",
    marksQueue: true,
  },
  paused: {
    prefix: "delayline_paused:",
    type: "string",
    holds: "exists only while the queue is paused",
    marksQueue: true,
  },
  /** See `lua/places/pace.ts`. */
  flow: {
    prefix: "delayline_flow:",
    type: "hash",
    holds:
      "the flow of a queue: `kind`, `step` (us for each message), `burst`, `arrival` (epoch us), up to which the rate is used up, and `declared`, as it was set, in JSON; with lanes also `ahead`, `lane` and `lane:<name>`, what each lane may, and `turn`, `look` and `pause`, the state of the turns; and `own:<lane>`, the lanes that schedules have for themselves",
    marksQueue: true,
  },
  /** See `lua/places/room.ts`. */
  room: {
    prefix: "delayline_room:",
    type: "hash",
    holds:
      "of a queue with lanes: id -> deadline (8) and member of each message that is due and waits for its turn",
    marksQueue: true,
  },
  turns: {
    prefix: "delayline_turns:",
    type: "zset",
    holds:
      "lane, priority, address and group of each message and retry that waits, in the order of the turns within a lane",
  },
  lanes: {
    prefix: "delayline_lanes:",
    type: "zset",
    holds:
      "the lanes in which messages wait, by when it is their turn; behind all others those that rest",
  },
  resting: {
    prefix: "delayline_resting:",
    type: "zset",
    holds: "the lanes that rest, since their rate is used up, by until when (epoch ms)",
  },
  lanePaces: {
    prefix: "delayline_pace:",
    type: "zset",
    holds: "the lanes by the instant up to which their rate is used up (epoch us)",
  },
  hands: {
    prefix: "delayline_hands:",
    type: "zset",
    holds:
      "lane and entry of the stream of the messages in hand, of lanes with a limit of these; those that are settled go when a turn needs their place, or with a sweep",
  },
  /** See `lua/delayed/transfer.ts`. */
  dropped: {
    prefix: "delayline_dropped:",
    type: "hash",
    holds:
      "how many messages were dropped when they were due: `onlyIf`, whose condition did not hold; `deliverWithin`, which were too late; `overlap`, since another run of their schedule was ready or in flight; and `#0` to `#999`, the last of them: address, key, when and why",
  },
  /** See `lua/queue/activity.ts`. */
  activity: {
    prefix: "delayline_activity:",
    type: "list",
    holds:
      "the last 200 things that somebody did to the queue, the newest first: when, which process, what; expires after 90 days",
  },
  /** See `schedules/record.ts`. */
  schedules: {
    prefix: "delayline_schedules:",
    type: "hash",
    holds:
      "schedule -> its record; and, behind a byte 0, a set of schedules -> the revision that was declared last, and a digest of it",
    marksQueue: true,
  },
  planning: {
    prefix: "delayline_planning:",
    type: "zset",
    holds:
      "the names of schedules by when to plan them next (epoch ms); `+inf` while one is paused or over",
  },
  /** See `lua/fragments/run.ts`. */
  running: {
    prefix: "delayline_running:",
    type: "hash",
    holds:
      "schedule that must not overlap -> the entries of the stream of its runs, 16 at most; one is gone when its run is settled",
  },
  quarantine: {
    prefix: "delayline_quarantine:",
    type: "list",
    holds: "payloads that a consumer's codec refused, or whose `poll` was given up",
    marksQueue: true,
  },
  unreadable: {
    prefix: "delayline_unreadable:",
    type: "list",
    holds: "whole members of an unknown layout",
    marksQueue: true,
  },
  /** See `lua/ready/ready.ts`. */
  receipts: {
    prefix: "delayline_receipts:",
    type: "zset",
    holds: "receipts of give-backs whose reply is awaited; expires a day after the last one",
  },
  /** See `lua/places/stream.ts`. */
  stream: {
    prefix: "delayline_stream:",
    type: "stream",
    holds:
      "ready messages of a reliable queue, and those in flight; its existence makes the queue reliable",
    marksQueue: true,
  },
  /** See `lua/fragments/groups.ts`. */
  knownGroups: {
    prefix: "delayline_groups:",
    type: "hash",
    holds:
      "the names of the stream's consumer groups, each with a 1: a stream that somebody deletes is created again with all of them",
  },
  returned: {
    prefix: "delayline_returned:",
    type: "string",
    holds:
      "how many entries were appended to the stream for messages that were given back; goes with the stream",
  },
  retries: {
    prefix: "delayline_retries:",
    type: "zset",
    holds: "address and group of each message that waits for a retry, by when it is due (epoch ms)",
    marksQueue: true,
  },
  /** See `lua/places/retries.ts`. */
  retrying: {
    prefix: "delayline_retrying:",
    type: "hash",
    holds: "the message that waits for a retry, by the same address and group",
  },
  dead: {
    prefix: "delayline_dead:",
    type: "stream",
    holds: "dead letters",
    marksQueue: true,
  },
  /** See `lua/fragments/once-record.ts`. */
  once: {
    prefix: "delayline_once:",
    type: "hash",
    holds:
      "business key -> of the message that was offered with `once` under it and is ready, running, retrying or handled: when it was handled, for how long that counts, its address, and its entries of the stream",
  },
  onceEnds: {
    prefix: "delayline_once_ends:",
    type: "zset",
    holds: "the same keys by when to look whether they can be forgotten (epoch ms)",
  },
  /** See `lua/reliable/revoke.ts`. */
  revoked: {
    prefix: "delayline_revoked:",
    type: "hash",
    holds:
      "entry of the stream and group of each revoked message whose handler may still run -> consumer and reason, in JSON; expires an hour after the last one",
  },
  notices: {
    prefix: "delayline_notices:",
    type: "channel",
    holds: "entry, group, consumer and reason, in JSON, of a message that was revoked in flight",
  },
  /** See `lua/reliable/handled.ts`. */
  handled: {
    prefix: "delayline_handled:",
    type: "stream",
    holds:
      "which messages were handled, when and by whom, with the option `keepHandled`; expires when its time is over",
  },
  /** See `lua/queue/history.ts`. */
  history: {
    prefix: "delayline_history:",
    type: "hash",
    holds:
      "numbers of the last day in minutes and of 90 days, which a dashboard keeps: 13 kB; expires after two days, or as long as it goes back",
  },
  /** See `lua/partitions/fact.ts`. */
  partitions: {
    prefix: "delayline_partitions:",
    type: "string",
    holds:
      "the fact about the partitions, `epoch:to:from:state:servers`; one copy beside each partition",
    marksQueue: true,
  },
  /** See `lua/partitions/attend.ts`. */
  members: {
    prefix: "delayline_members:",
    type: "zset",
    holds:
      "the processes that have the queue open, by when they were last seen (epoch ms); beside partition 0 only; expires after about a minute",
    marksQueue: true,
  },
  journal: {
    prefix: "delayline_journal:",
    type: "hash",
    holds:
      "of a partition: the batch on its way to other partitions, and the number of the last one; of partition 0: when the last change began",
  },
  arrivals: {
    prefix: "delayline_arrivals:",
    type: "hash",
    holds:
      "source -> number of the last batch that arrived from it: for a partition, another partition; for any queue, an import",
  },
  /** See `lua/partitions/hold.ts`. */
  holder: {
    prefix: "delayline_holder:",
    type: "hash",
    holds: "of a partition: who consumes it exclusively, until when, and the fence",
  },
} as const satisfies Readonly<Record<string, KeyOfQueue>>;

/** The keys of one queue by name; see {@link KEYS}. */
export type QueueKeys = { readonly [Name in keyof typeof KEYS]: string };

/** A queue's name, or what has it: a definition, or a handle. */
export type Named = string | { readonly name: string };

/** The name of a queue; what is neither is returned as it is, for {@link queueKeys} to refuse. */
export function nameOf(queue: Named): string {
  return typeof queue === "object" && queue !== null ? queue.name : queue;
}

/**
 * Returns the keys of the queue `name`.
 *
 * A name that already holds a hash tag (`{...}`) is not given another.
 *
 * @throws {TypeError} if `name` is not a non-empty, well-formed string; if its keys would be in different Cluster slots
 * (`a}b`, `a{b`, `{}q`); or if it could be a key of another queue: a name that begins with `redisson_delay_queue` or
 * `delayline_` must not have a colon after that.
 */
export function queueKeys(name: string): QueueKeys {
  const tagged = hashTagged(name);
  const keys = Object.entries<KeyOfQueue>(KEYS).map(([one, { prefix }]) => [
    one,
    prefix === undefined ? name : prefix + tagged,
  ]);
  return Object.fromEntries(keys) as QueueKeys;
}

/** What to do with what has a name: a definition, or a handle. */
function wayToName(value: unknown): string {
  const { name, kind } = (value ?? {}) as { readonly name?: unknown; readonly kind?: unknown };
  if (typeof name !== "string") return "";
  return kind === undefined ? "; pass its name" : "; open a definition with line.open";
}

/**
 * Returns the name with braces around the part that Redis Cluster hashes.
 *
 * Redis hashes what stands between the first `{` and the first `}` after it, or the whole key if that is missing or
 * empty. The key of the ready LIST is the bare name, which must hash like the other keys.
 */
function hashTagged(name: unknown): string {
  if (typeof name !== "string") {
    throw new TypeError(`queue name must be a string, got ${typeof name}${wayToName(name)}`);
  }
  if (name === "") throw new TypeError("queue name must not be empty");
  if (!name.isWellFormed()) {
    throw new TypeError(`queue name must be well-formed Unicode, got ${JSON.stringify(name)}`);
  }
  const prefix = KEY_PREFIX.exec(name)?.[0];
  if (prefix !== undefined) {
    throw new TypeError(
      `queue name must not begin as the keys of queues do (${prefix}), or it could be the key of another queue; got ${JSON.stringify(name)}`,
    );
  }
  const open = name.indexOf("{");
  if (open === -1) {
    if (!name.includes("}")) return `{${name}}`;
  } else if (name.indexOf("}", open) > open + 1) {
    return name;
  }
  throw new TypeError(
    `queue name must have no braces or a whole non-empty {tag}, or its keys land in different Cluster slots; got ${JSON.stringify(name)}`,
  );
}

/**
 * The name of the queue that has the same keys as this one, except the LIST of ready messages: `{orders}` for `orders`,
 * and the other way round. Undefined if there is none: the name has a tag and more.
 */
export function otherNameOf(name: string): string | undefined {
  if (!/[{}]/.test(name)) return `{${name}}`;
  return /^\{([^{}]+)\}$/.exec(name)?.[1];
}

/** The beginning of every key of a queue except the ready LIST; also of keys that may be added later. */
const KEY_PREFIX = /^(?:redisson_delay_queue|delayline_)[^:]*:/;
