/**
 * The Redis keys of one queue.
 *
 * The first four names are Redisson's (3.21.1 and later), so a Java service and a Node service can share the queue. The
 * others begin with `delayline_`. All keys of a queue have the same hash tag, and so are on one Cluster node. They are
 * without the `keyPrefix`, which ioredis adds. The channel is not a key, and gets no prefix.
 */
export interface QueueKeys {
  /** ZSET: member = packed message, score = deadline in epoch milliseconds. */
  readonly timeouts: string;
  /** LIST: the insertion order, oldest first, one element per offered message. */
  readonly order: string;
  /** LIST: payloads that are due, for consumers to pop. Its name is the queue's name. */
  readonly ready: string;
  /** Pub/sub channel: the deadline of a message that became the first to be due; `0` means "look now". */
  readonly channel: string;
  /** LIST: the front part of the insertion order, only while that is being compacted. */
  readonly compacted: string;
  /**
   * HASH: business key -> address (24 bytes) and outcome of the offer; see `lua/delayed/offer-keyed.ts`. Only for
   * messages that have a key.
   */
  readonly businessKeys: string;
  /** String: the transfer task that moved messages last. A hint that expires. */
  readonly mover: string;
  /** String: exists only while the queue is paused. */
  readonly paused: string;
  /** LIST: payloads that a consumer's codec refused, or whose `poll` was given up. */
  readonly quarantine: string;
  /** LIST: members of an unknown layout, whole. */
  readonly unreadable: string;
  /**
   * ZSET: receipts of give-backs under way, by the server's time (epoch ms); see `lua/ready/ready.ts`. Expires a
   * day after the last one.
   */
  readonly receipts: string;
  /**
   * STREAM: messages of a reliable queue that are ready or in flight; see `lua/fragments/entry.ts`. A queue is
   * reliable if this key exists.
   */
  readonly stream: string;
  /** ZSET: `address | group` of each message that waits for a retry, by when it is due (epoch ms). */
  readonly retries: string;
  /** HASH: the messages that wait for a retry, by `address | group`; see `lua/fragments/retry.ts`. */
  readonly retrying: string;
  /** STREAM: dead letters of a reliable queue. */
  readonly dead: string;
  /** String: the fact, which says how many partitions the queue has; only for a partition. */
  readonly partitions: string;
  /** HASH: a batch of messages on its way to other partitions, and the number of the last batch. */
  readonly journal: string;
  /** HASH: source -> the number of the last batch that arrived from it. A source is a partition or an import. */
  readonly arrivals: string;
  /** HASH: the process that consumes the partition exclusively; see `lua/partitions/hold.ts`. */
  readonly holder: string;
  /** ZSET: the processes that have the queue open, by when they were last seen (epoch ms); only for partition 0. */
  readonly members: string;
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
  return {
    timeouts: `redisson_delay_queue_timeout:${tagged}`,
    order: `redisson_delay_queue:${tagged}`,
    ready: name,
    channel: `redisson_delay_queue_channel:${tagged}`,
    compacted: `delayline_compacted:${tagged}`,
    businessKeys: `delayline_keys:${tagged}`,
    mover: `delayline_mover:${tagged}`,
    paused: `delayline_paused:${tagged}`,
    quarantine: `delayline_quarantine:${tagged}`,
    unreadable: `delayline_unreadable:${tagged}`,
    receipts: `delayline_receipts:${tagged}`,
    stream: `delayline_stream:${tagged}`,
    retries: `delayline_retries:${tagged}`,
    retrying: `delayline_retrying:${tagged}`,
    dead: `delayline_dead:${tagged}`,
    partitions: `delayline_partitions:${tagged}`,
    journal: `delayline_journal:${tagged}`,
    arrivals: `delayline_arrivals:${tagged}`,
    holder: `delayline_holder:${tagged}`,
    members: `delayline_members:${tagged}`,
  };
}

/**
 * Returns the name with braces around the part that Redis Cluster hashes.
 *
 * Redis hashes what stands between the first `{` and the first `}` after it, or the whole key if that is missing or
 * empty. The key of the ready LIST is the bare name, which must hash like the other keys.
 */
function hashTagged(name: unknown): string {
  if (typeof name !== "string") {
    throw new TypeError(`queue name must be a string, got ${typeof name}`);
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

/** The beginning of every key of a queue except the ready LIST; also of keys that may be added later. */
const KEY_PREFIX = /^(?:redisson_delay_queue|delayline_)[^:]*:/;
