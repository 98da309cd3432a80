import type { Redis } from "ioredis";
import { layout, partitionName } from "../../../inside.ts";
import type { Endpoint, SiteNode } from "./site.ts";

/** The permissions of the doctor's user on one server. */
export interface AccessReport {
  readonly endpoint: Endpoint;
  /** The name of the user. */
  readonly name: string;
  /** Whether the user may change access rules, as far as is known. */
  readonly isAdmin: boolean;
  /** Where Redis keeps its access rules: the file of the setting `aclfile`, redis.conf, or nowhere. */
  readonly kept: "aclfile" | "redis.conf" | "nowhere";
  /** Commands that Redis refuses to the user, or does not know. */
  readonly refused: readonly (Pick<Trial, "rule" | "neededBy"> & { readonly isUnknown: boolean })[];
  /** Commands that could not be tried without side effects. */
  readonly untried: readonly string[];
  /** Rules about keys and channels that the user lacks. */
  readonly closed: readonly Closed[];
}

/** A queue whose keys and channels are tried. */
export interface TriedQueue {
  readonly name: string;
  /** How many partitions it has; 0 for an ordinary queue. */
  readonly partitions: number;
  readonly isReliable: boolean;
}

/** A rule for keys or channels of a queue that its user lacks. */
export interface Closed {
  readonly queue: string;
  /** What the rule is for: the keys or the channels of the queue, or of its partitions. */
  readonly of:
    "keys" | "channel" | "notices" | "partition keys" | "partition channels" | "partition notices";
  readonly isPartitioned: boolean;
  /** As ACL SETUSER takes it, with the `keyPrefix`: `~delayline_*:{orders}`. */
  readonly rule: string;
}

/**
 * Tries every command that the library needs, and the keys and channels of some queues. Changes nothing.
 *
 * Uses `ACL DRYRUN` (Redis 7.0) where the user may. Otherwise sends the commands in a form that does nothing, to a key
 * that does not exist. Those without such a form run in a script that must not write (Redis 7.0): Redis checks the
 * access rules before it refuses the write.
 */
export async function readAccess(
  node: SiteNode,
  queues: readonly TriedQueue[],
): Promise<AccessReport> {
  const redis = node.duplicate();
  const within = <Reply>(ask: () => Promise<Reply>) => node.ask(ask);
  try {
    await within(() => redis.connect());
    const asked = await within(() => redis.call("ACL", "WHOAMI")).then(String, () => undefined);
    const name = asked ?? node.user ?? "default";
    const trier = await within(() => chooseTrier(redis, asked));
    const { keyPrefix } = node.site;
    const { timeouts, channel } = layout.queueKeys(queues[0]?.name ?? NO_QUEUE);
    const scratch = keyPrefix + timeouts.replace(/^[^:]*/, SCRATCH);
    const tried = await within(() =>
      Promise.all(
        TRIALS.map(async (trial) => ({
          ...trial,
          refusal: await trier.try(wordsOf(trial, scratch, channel), trial.hasEffect),
        })),
      ),
    );
    const closed = await within(() => findClosed(trier, queues, keyPrefix));
    const subscription = await within(() => trySubscription(redis, channel));
    const all = [...tried, { rule: "subscribe", neededBy: "all" as const, refusal: subscription }];
    const refused = all.flatMap(({ rule, neededBy, refusal }) => {
      const isUnknown = UNKNOWN.test(refusal ?? "");
      const isRefused = isUnknown || COMMAND.test(refusal ?? "");
      return isRefused ? [{ rule, neededBy, isUnknown }] : [];
    });
    const untried = all.filter(({ refusal }) => refusal === UNTRIED).map(({ rule }) => rule);
    const { dryRun } = trier;
    const isAdmin =
      dryRun !== undefined && (await within(() => dryRun(["ACL", "SETUSER", name]))) === undefined;
    const kept = await within(() => readKept(redis)).catch(() => "nowhere" as const);
    return { endpoint: node, name, isAdmin, kept, refused, untried, closed };
  } finally {
    redis.disconnect();
  }
}

/** Tries a command. Resolves with the refusal, with undefined if there is none, or with {@link UNTRIED}. */
type Try = (words: readonly string[], hasEffect?: boolean) => Promise<string | undefined>;

interface Trier {
  readonly try: Try;
  /** Asks Redis; undefined if the user may not. */
  readonly dryRun: Try | undefined;
}

async function chooseTrier(redis: Redis, user: string | undefined): Promise<Trier> {
  const dryRun: Try = async (words) => {
    try {
      const reply = String(await redis.call("ACL", "DRYRUN", user ?? "default", ...words));
      return reply === "OK" ? undefined : reply;
    } catch (error) {
      return messageOf(error);
    }
  };
  const first = user === undefined ? "NOPERM" : await dryRun(["PING"]);
  if (first === undefined) return { try: dryRun, dryRun };
  const trying: Try = (words, hasEffect = false) =>
    hasEffect ? tryInScript(redis, words) : tryIt(redis, words);
  return { try: trying, dryRun: undefined };
}

async function readKept(redis: Redis): Promise<AccessReport["kept"]> {
  const [, file = ""] = await redis.config("GET", "aclfile");
  if (file !== "") return "aclfile";
  return /config_file:\S/.test(await redis.info("server")) ? "redis.conf" : "nowhere";
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
      // Where EVAL itself is refused, nothing is known of the command.
      if (message.includes("'eval'")) return UNTRIED;
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
  queues: readonly TriedQueue[],
  keyPrefix: string,
): Promise<Closed[]> {
  const closed: Closed[] = [];
  for (const { name: queue, partitions, isReliable } of queues.slice(0, SOME)) {
    const isPartitioned = partitions > 0;
    for (const { of, rule, names } of rulesFor(queue, isPartitioned, keyPrefix)) {
      if (of === "notices" && !isReliable) continue;
      const isKey = rule.startsWith("~");
      const refusals = await Promise.all(
        names.map((name) =>
          isKey ? trier.try(["EXISTS", name]) : trier.try(["PUBLISH", name, "0"], true),
        ),
      );
      const isRefused = (refusal = "") => (isKey ? KEY : CHANNEL).test(refusal);
      if (refusals.some(isRefused)) closed.push({ queue, of, isPartitioned, rule });
    }
  }
  return closed;
}

interface Rule extends Pick<Closed, "of" | "rule"> {
  /** Names of keys or channels that it has to allow. */
  readonly names: readonly string[];
}

/**
 * The rules for keys and channels of a queue, as docs/operations/setting-up.md has them. An ordinary queue has no
 * partitions; but whoever looks at it asks for their number.
 */
export function rulesFor(queue: string, isPartitioned: boolean, keyPrefix: string): Rule[] {
  const first = partitionName(queue, 0);
  const every = `${glob(first.replace(/\d+\/\d+\}$/, ""))}*}`;
  const key = (of: Closed["of"], pattern: string, names: readonly string[]): Rule => ({
    of,
    rule: `~${glob(keyPrefix)}${pattern}`,
    names: names.map((name) => keyPrefix + name),
  });
  const keys = (of: Closed["of"], name: string, pattern: string, tagged: string): Rule[] => {
    const { channel: _, notices: __, ready, ...others } = layout.queueKeys(name);
    return [
      key(of, pattern, [ready]),
      ...["redisson_delay_queue", "delayline_"].map((prefix) => {
        const names = Object.values(others).filter((other) => other.startsWith(prefix));
        return key(of, `${prefix}*:${tagged}`, names);
      }),
    ];
  };
  const { partitions } = layout.queueKeys(first);
  const tagged = glob(tagOf(queue));
  const own = [
    ...keys("keys", queue, glob(queue), tagged),
    channelRule("channel", queue, tagged),
    noticesRule(queue, tagged),
  ];
  if (!isPartitioned) return [...own, key("partition keys", `delayline_*:${every}`, [partitions])];
  return [
    ...own,
    ...keys("partition keys", first, every, every),
    channelRule("partition channels", first, every),
    noticesRule(first, every),
    {
      of: "partition notices",
      rule: `&delayline_partitions:${every}:notice`,
      names: [`${partitions}:notice`],
    },
  ];
}

function channelRule(of: Closed["of"], name: string, tagged: string): Rule {
  return {
    of,
    rule: `&redisson_delay_queue_channel:${tagged}`,
    names: [layout.queueKeys(name).channel],
  };
}

/** The channel on which consumers hear of revoked messages. */
function noticesRule(name: string, tagged: string): Rule {
  const names = [layout.queueKeys(name).notices];
  return { of: "notices", rule: `&delayline_notices:${tagged}`, names };
}

/** What follows the prefix in the names of a queue's keys: its name, with a tag around it unless it has one. */
function tagOf(queue: string): string {
  const { timeouts } = layout.queueKeys(queue);
  return timeouts.slice(timeouts.indexOf(":") + 1);
}

/** A name as a pattern that matches only itself. */
function glob(name: string): string {
  return name.replaceAll(/[\\*?[\]]/g, String.raw`\$&`);
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
  zscan KEY 0
  blmove KEY KEY LEFT LEFT no-number
  xadd KEY NOMKSTREAM * field value
  xdel KEY 0-1
  xtrim KEY MINID 0
  xlen KEY
  xrange KEY - +
  xrevrange KEY + -
  xreadgroup GROUP group consumer STREAMS KEY >
  xack KEY group 0-1
  xclaim KEY group consumer 0 0-1
  xpending KEY group
  xgroup|create KEY group 0
  xgroup|setid KEY group 0
  xgroup|delconsumer KEY group consumer
  xinfo|stream KEY
  xinfo|groups KEY
  xinfo|consumers KEY group
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
