import type { Redis } from "ioredis";
import { queueKeys } from "../../../queue/keys.ts";
import type { SiteNode } from "./site.ts";

/** The permissions of the doctor's user on one server. */
export interface AccessReport {
  readonly address: string;
  /** The user of the connection; undefined if Redis does not name it. */
  readonly user: string | undefined;
  /** Commands that Redis refuses to the user, or does not know. */
  readonly refused: readonly (Pick<Trial, "rule" | "neededBy"> & { readonly isUnknown: boolean })[];
  /** Commands that could not be tried without side effects. */
  readonly untried: readonly string[];
  /** Keys and channels that the user may not use. */
  readonly closed: readonly Closed[];
}

/** A key, with its `keyPrefix`, or a channel that the user may not use. */
interface Closed {
  readonly queue: string;
  readonly kind: "key" | "channel";
  readonly name: string;
}

/**
 * Tries every command that the library needs, and the keys and channels of some queues. Changes nothing.
 *
 * Uses `ACL DRYRUN` (Redis 7.0) where the user may. Otherwise sends the commands in a form that does nothing, to a key
 * that does not exist. Those without such a form run in a script that must not write (Redis 7.0): Redis checks the
 * access rules before it refuses the write.
 */
export async function readAccess(node: SiteNode, queues: readonly string[]): Promise<AccessReport> {
  const redis = node.duplicate();
  const within = <Reply>(reply: Promise<Reply>) => node.ask(() => reply);
  try {
    await within(redis.connect());
    const user = await within(redis.call("ACL", "WHOAMI")).then(String, () => undefined);
    const trier = await chooseTrier(redis, user);
    const { keyPrefix } = node.site;
    const { timeouts, channel } = queueKeys(queues[0] ?? NO_QUEUE);
    const scratch = keyPrefix + timeouts.replace(/^[^:]*/, SCRATCH);
    const tried = await within(
      Promise.all(
        TRIALS.map(async (trial) => ({
          ...trial,
          refusal: await trier(wordsOf(trial, scratch, channel), trial.hasEffect),
        })),
      ),
    );
    const closed = await within(findClosed(trier, queues, keyPrefix));
    const subscription = await within(trySubscription(redis, channel));
    const all = [...tried, { rule: "subscribe", neededBy: "all" as const, refusal: subscription }];
    const refused = all.flatMap(({ rule, neededBy, refusal }) => {
      const isUnknown = UNKNOWN.test(refusal ?? "");
      const isRefused = isUnknown || COMMAND.test(refusal ?? "");
      return isRefused ? [{ rule, neededBy, isUnknown }] : [];
    });
    const untried = all.filter(({ refusal }) => refusal === UNTRIED).map(({ rule }) => rule);
    return { address: node.address, user, refused, untried, closed };
  } finally {
    redis.disconnect();
  }
}

/** Tries a command. Resolves with the refusal, with undefined if there is none, or with {@link UNTRIED}. */
type Trier = (words: readonly string[], hasEffect?: boolean) => Promise<string | undefined>;

async function chooseTrier(redis: Redis, user: string | undefined): Promise<Trier> {
  const dryRun: Trier = async (words) => {
    try {
      const reply = String(await redis.call("ACL", "DRYRUN", user ?? "default", ...words));
      return reply === "OK" ? undefined : reply;
    } catch (error) {
      return messageOf(error);
    }
  };
  const first = user === undefined ? "NOPERM" : await dryRun(["PING"]);
  if (first === undefined) return dryRun;
  return (words, hasEffect = false) =>
    hasEffect ? tryInScript(redis, words) : tryIt(redis, words);
}

async function tryIt(redis: Redis, [name = "", ...args]: readonly string[]) {
  return await redis.call(name, ...args).then(() => undefined, messageOf);
}

/** Redis 6.2 has no scripts that must not write. */
async function tryInScript(redis: Redis, words: readonly string[]): Promise<string> {
  const args = words.map((_, i) => `ARGV[${i + 1}]`).join(", ");
  const script = `#!lua flags=no-writes\nreturn redis.pcall(${args})`;
  return await redis.eval(script, 0, ...words).then(
    () => UNTRIED,
    (error: unknown) => {
      const message = messageOf(error);
      return /permission|can't|Write commands/.test(message) ? message : UNTRIED;
    },
  );
}

async function trySubscription(redis: Redis, channel: string): Promise<string | undefined> {
  return await redis.subscribe(channel).then(() => undefined, messageOf);
}

/** Tries some of the queues: the rules for all queues usually have the same form. */
async function findClosed(
  trier: Trier,
  queues: readonly string[],
  keyPrefix: string,
): Promise<Closed[]> {
  const closed: Closed[] = [];
  for (const queue of queues.slice(0, SOME)) {
    const { channel, ...keys } = queueKeys(queue);
    const names = Object.values(keys).map((key) => keyPrefix + key);
    const refusals = await Promise.all(names.map((name) => trier(["EXISTS", name])));
    for (const [i, name] of names.entries()) {
      if (KEY.test(refusals[i] ?? "")) closed.push({ queue, kind: "key", name });
    }
    const refusal = await trier(["PUBLISH", channel, "0"], true);
    if (CHANNEL.test(refusal ?? "")) closed.push({ queue, kind: "channel", name: channel });
  }
  return closed;
}

function messageOf(error: unknown): string {
  return (error as Error).message;
}

// The wording of Redis 6.2, 7.0 and later, and of a command in a script.
const COMMAND = /permissions? to run the|can't run this command/i;
const KEY = /access .*\bkeys?\b/i;
const CHANNEL = /\bchannels?\b/i;
const UNKNOWN = /unknown (?:redis )?command|Command '.*' not found/i;

/** A command that could not be tried without side effects. */
const UNTRIED = "untried";

/** Replaces the first part of the names of keys that are tried. */
const SCRATCH = "delayline_doctor";

/** The queue that is tried where none is known. */
const NO_QUEUE = "delayline-doctor";

/** Queues whose keys and channels are tried. */
const SOME = 20;

/** A command that the library needs, in a form that does nothing to a key that does not exist. */
interface Trial {
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
function wordsOf({ rule, args }: Trial, key: string, channel: string): string[] {
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
