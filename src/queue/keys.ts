/**
 * The Redis keys of one queue.
 *
 * The first four names are Redisson's (3.21.1 and later), so that a Java service and a Node service
 * share the queue; those that begin with `delayline_` are ours. All of a queue's keys have one hash
 * tag and so live on one Cluster node. They are written here without ioredis's `keyPrefix`, which
 * ioredis adds to keys by itself; the channel is not a key and stays as it is.
 */
export interface QueueKeys {
  /** ZSET: member = packed message, score = deadline in epoch milliseconds. */
  readonly timeouts: string;
  /** LIST: the insertion order, oldest first, one element per offered message. */
  readonly order: string;
  /** LIST: payloads that are due, for consumers to pop. Its name is the queue's name. */
  readonly ready: string;
  /** Pub/sub channel: the deadline of a message that became the first to be due. */
  readonly channel: string;
  /** LIST: the part of the insertion order that has been compacted; only there meanwhile. */
  readonly compacted: string;
  /**
   * HASH: business key -> address (24 bytes), and what the offer came to; see `lua/delayed/offer-keyed.ts`.
   * Only for messages that have a key.
   */
  readonly businessKeys: string;
  /** String: the transfer task that moved messages last. A hint with a time to live. */
  readonly mover: string;
  /** String: only there while the queue is paused. */
  readonly paused: string;
  /** LIST: payloads that a consumer's codec refused, or whose `poll` was given up. */
  readonly quarantine: string;
  /** LIST: members of an unknown layout, whole. */
  readonly unreadable: string;
  /**
   * ZSET: receipts of give-backs that are under way, by the server's time in epoch milliseconds; see
   * `lua/ready/give-back.ts`. Expires a day after the last one.
   */
  readonly receipts: string;
  /**
   * STREAM: ready messages of a reliable queue, and those in flight; see `lua/fragments/entry.ts`. That it
   * exists is what makes a queue reliable.
   */
  readonly stream: string;
  /** ZSET: `address | group` of the messages that wait for a retry, by when it is due (epoch ms). */
  readonly retries: string;
  /** HASH: what waits for a retry, by the same `address | group`; see `lua/fragments/retry.ts`. */
  readonly retrying: string;
  /** STREAM: dead letters of a reliable queue. */
  readonly dead: string;
  /** String: how many partitions a queue has; only there for a partition. See `partitions/fact.ts`. */
  readonly partitions: string;
  /** HASH: a batch of messages that is on its way to other partitions, and the number of the last one. */
  readonly journal: string;
  /** HASH: source partition -> the number of the last batch that arrived from it. */
  readonly arrivals: string;
  /** HASH: who consumes the partition exclusively; see `lua/partitions/hold.ts`. */
  readonly holder: string;
  /** ZSET: the processes that have the queue open, by when they were last seen (epoch ms); in partition 0 only. */
  readonly members: string;
}

/**
 * The keys of the queue `name`.
 *
 * A name that already holds a hash tag (`{...}`) is used as it is, without new braces.
 *
 * @throws {TypeError} if `name` is not a non-empty, well-formed string, its keys would land in
 * different Cluster slots (`a}b`, `a{b`, `{}q`), or it could be the key of another queue: names that
 * begin with `redisson_delay_queue` or `delayline_` must not have a colon after that.
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
 * The name with braces around the part that Redis Cluster hashes.
 *
 * Redis hashes what stands between the first `{` and the first `}` behind it, or the whole key where
 * that is missing or empty. The key of the ready LIST is the bare name, so it has to hash like the others.
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

/** How every key of a queue begins, but its name; those that are added one day, too. */
const KEY_PREFIX = /^(?:redisson_delay_queue|delayline_)[^:]*:/;
