/** A command that the library needs, in a form that does nothing to a key that does not exist. */
export interface Trial {
  /** Its name in access rules: `zadd`, `client|id`. */
  readonly rule: string;
  /** The queues that need it: all, reliable ones, or those with exclusive consumers. */
  readonly neededBy: "all" | "reliable" | "exclusive";
  /** Its arguments. `KEY` and `CHANNEL` stand for those of the queue. */
  readonly args: readonly string[];
  /** Whether this form changes something. It is then tried only where Redis does not execute it. */
  readonly hasEffect: boolean;
}

/**
 * One per line: the rule and its arguments. Most read or remove what does not exist. Where a command could only add
 * something, one argument is invalid: Redis checks the access rules first, and most arguments later.
 */
const EVERY_QUEUE = `
  time
  ping
  client|id
  client|setname delayline:doctor
  client|unblock 0
  evalsha 0000000000000000000000000000000000000000 0
  eval return_1 0
  zadd KEY no-number member
  zrem KEY member
  zcard KEY
  zcount KEY 0 1
  zrank KEY member
  zscore KEY member
  zrange KEY 0 0
  zrangebyscore KEY 0 1
  zremrangebyrank KEY 0 0
  lpop KEY
  rpop KEY
  blpop KEY no-number
  lrange KEY 0 0
  llen KEY
  lindex KEY 0
  ltrim KEY 0 0
  lset KEY 0 element
  lrem KEY 1 element
  get KEY
  set KEY value XX
  del KEY
  unlink KEY
  exists KEY
  expire KEY 1
  rename KEY KEY
  hget KEY field
  hset KEY field value odd
  hmget KEY field
  hdel KEY field
  hlen KEY
  hscan KEY 0
`;

const RELIABLE_QUEUES = `
  hexists KEY field
  blmove KEY KEY LEFT LEFT no-number
  xadd KEY NOMKSTREAM * field value
  xdel KEY 0-1
  xlen KEY
  xrange KEY - +
  xrevrange KEY + -
  xreadgroup GROUP group consumer STREAMS KEY >
  xack KEY group 0-1
  xclaim KEY group consumer 0 0-1
  xpending KEY group
  xgroup|create KEY group 0
  xinfo|stream KEY
`;

const EXCLUSIVE_QUEUES = `
  client|list ID 0
  client|kill ID 0
`;

const WITH_EFFECT = `
  lpush KEY element
  rpush KEY element
  publish CHANNEL 0
`;

/** All commands except `subscribe`, which the doctor tries by subscribing. */
export const TRIALS: readonly Trial[] = [
  ...read(EVERY_QUEUE, "all", false),
  ...read(WITH_EFFECT, "all", true),
  ...read(RELIABLE_QUEUES, "reliable", false),
  ...read(EXCLUSIVE_QUEUES, "exclusive", false),
];

/** The words of a trial, as sent to Redis. */
export function wordsOf({ rule, args }: Trial, key: string, channel: string): string[] {
  const words = args.map((word) => (word === "KEY" ? key : word === "CHANNEL" ? channel : word));
  return [...rule.split("|"), ...words];
}

function read(text: string, neededBy: Trial["neededBy"], hasEffect: boolean): Trial[] {
  return text
    .trim()
    .split("\n")
    .map((line) => {
      const [rule = "", ...words] = line.trim().split(" ");
      const args = words.map((word) => word.replace("return_1", "return 1"));
      return { rule, neededBy, args, hasEffect };
    });
}
