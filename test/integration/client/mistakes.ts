import { collectMetrics } from "../../../src/adapters/prometheus/index.ts";
import { openQueue } from "../../../src/adapters/nestjs/queue-registration.ts";
import { startRedis } from "../../../src/adapters/testing/index.ts";
import { JsonJacksonCodec, LongCodec } from "../../../src/adapters/redisson/index.ts";
import {
  Delayline,
  type BlockingQueue,
  type DelayedQueue,
  type Delivery,
  type ReliableQueue,
} from "../../../src/index.ts";
import { dashboard, serveDashboard } from "../../../src/tools/dashboard/index.ts";

/** What the calls of the table use. */
export interface Bench {
  readonly line: Delayline;
  /** The name of the plain queue. */
  readonly name: string;
  readonly delayed: DelayedQueue;
  readonly blocking: BlockingQueue;
  readonly reliable: ReliableQueue;
  readonly delivery: Delivery;
  /** A queue for calls that are accepted. */
  readonly accepted: DelayedQueue;
  /** A client that is closed, and its handle. */
  readonly ended: Delayline;
  readonly closed: DelayedQueue;
}

/** A call, or the words of a command line. */
type Call = ((its: Bench) => unknown) | string;

/** What is wrong, the rule, the value (or its type), and the way out where the rule does not say it. */
type Says = readonly [what: string, rule: string, value: string, wayOut?: string];

const NOW = Date.UTC(2030, 0, 1);
const ID = "1755757960123-0102030405060708090a0b0c0d0e0f10";
const RESULT = { id: ID, deadline: 1_755_757_960_123, outcome: "added" };
const REGISTRY = {
  registerMetric: () => {},
  getSingleMetric: () => undefined,
  removeSingleMetric: () => {},
};

function circular(): unknown {
  const order: Record<string, unknown> = { id: 1 };
  order["lines"] = [{ order }];
  return order;
}

/** Mistakes that are refused: what was done, the call, and what its error says. */
export const REFUSED: readonly (readonly [mistake: string, call: Call, says: Says])[] = [
  // The client.
  [
    "a URL in place of the options",
    () => new Delayline("redis://user:s3cret@localhost" as never),
    ["options", "must be an object", "got a string", "such as { redis }"],
  ],
  [
    "a host beside redis",
    () => new Delayline({ host: "localhost" } as never),
    ["option", "must be one of redis", 'got "host"', "did you mean redis: { host }?"],
  ],
  [
    "a port beside redis",
    () => new Delayline({ port: 6379 } as never),
    ["option", "must be one of redis", 'got "port"', "did you mean redis: { port }?"],
  ],
  [
    "url instead of redis",
    () => new Delayline({ url: "redis://localhost" } as never),
    ["option", "must be one of redis", 'got "url"', "did you mean redis?"],
  ],
  [
    "connection, as in BullMQ",
    () => new Delayline({ connection: {} } as never),
    ["option", "must be one of redis", 'got "connection"', "did you mean redis?"],
  ],
  [
    "prefix, as in BullMQ",
    () => new Delayline({ prefix: "app" } as never),
    ["option", "must be one of redis", 'got "prefix"', "did you mean redis: { keyPrefix }?"],
  ],
  [
    "an option of ioredis beside redis",
    () => new Delayline({ maxRetriesPerRequest: null } as never),
    [
      "option",
      "must be one of redis",
      'got "maxRetriesPerRequest"',
      "did you mean redis: { maxRetriesPerRequest }?",
    ],
  ],
  [
    "an option of subscribe on the client",
    () => new Delayline({ concurrency: 5 } as never),
    [
      "option",
      "must be one of redis",
      'got "concurrency"',
      "concurrency is an option of subscribe",
    ],
  ],
  [
    "an option of a reliable queue on the client",
    () => new Delayline({ leaseTimeout: 5000 } as never),
    [
      "option",
      "must be one of redis",
      'got "leaseTimeout"',
      "leaseTimeout is an option of getReliableQueue",
    ],
  ],
  [
    "partitions on the client",
    () => new Delayline({ partitions: 8 } as never),
    [
      "option",
      "must be one of redis",
      'got "partitions"',
      "partitions is an option of getDelayedQueue, getBlockingQueue and getReliableQueue",
    ],
  ],
  [
    "retries on the client",
    () => new Delayline({ retries: 3 } as never),
    [
      "option",
      "must be one of redis",
      'got "retries"',
      "use maxAttempts, an option of getReliableQueue",
    ],
  ],
  [
    "a misspelt option",
    () => new Delayline({ calTimeout: 5000 } as never),
    ["option", "must be one of redis", 'got "calTimeout"', "did you mean callTimeout?"],
  ],
  [
    "a codec in capitals",
    () => new Delayline({ codec: "JSON" } as never),
    [
      "codec",
      "must be msgpack, json, string, bytes or an object with name, encode and decode",
      'got "JSON"',
    ],
  ],
  [
    "a codec that is not there",
    () => new Delayline({ codec: "protobuf" } as never),
    [
      "codec",
      "must be msgpack, json, string, bytes or an object with name, encode and decode",
      'got "protobuf"',
    ],
  ],
  [
    "the JSON object as a codec",
    () => new Delayline({ codec: JSON } as never),
    [
      "codec",
      "must be msgpack, json, string, bytes or an object with name, encode and decode",
      "got object",
    ],
  ],
  [
    "serializer instead of codec",
    () => new Delayline({ serializer: JSON } as never),
    ["option", "must be one of redis", 'got "serializer"', "did you mean codec?"],
  ],
  [
    "transfer from the environment",
    () => new Delayline({ transfer: "false" } as never),
    ["transfer", "must be a boolean", 'got "false"'],
  ],
  [
    "interop as a boolean",
    () => new Delayline({ interop: true } as never),
    ["interop", 'must be "none" or "redisson"', "got true"],
  ],
  [
    "anyTime from the environment",
    () => new Delayline({ anyTime: "1" } as never),
    ["anyTime", "must be a boolean", 'got "1"'],
  ],
  [
    "maxPayloadBytes with a unit",
    () => new Delayline({ maxPayloadBytes: "1mb" } as never),
    ["maxPayloadBytes", "must be a whole number", "got string"],
  ],
  [
    "maxPayloadBytes from the environment",
    () => new Delayline({ maxPayloadBytes: "1048576" } as never),
    ["maxPayloadBytes", "must be a whole number", "got string", "convert it with Number"],
  ],
  [
    "maxPayloadBytes of 0, for no limit",
    () => new Delayline({ maxPayloadBytes: 0 }),
    ["maxPayloadBytes", "must be a whole number between 1 and 536870912", "got 0"],
  ],
  [
    "callTimeout with a unit",
    () => new Delayline({ callTimeout: "5s" } as never),
    ["callTimeout", "must be a whole number", "got string"],
  ],
  [
    "callTimeout from the environment",
    () => new Delayline({ callTimeout: "5000" } as never),
    ["callTimeout", "must be a whole number", "got string", "convert it with Number"],
  ],
  [
    "callTimeout from an unset variable",
    () => new Delayline({ callTimeout: NaN }),
    ["callTimeout", "must be a whole number between 1 and 2147483647 ms", "got NaN"],
  ],
  [
    "callTimeout of Infinity, for no limit",
    () => new Delayline({ callTimeout: Infinity }),
    ["callTimeout", "must be a whole number between 1 and 2147483647 ms", "got Infinity"],
  ],
  [
    "callTimeout of 0, for no limit",
    () => new Delayline({ callTimeout: 0 }),
    ["callTimeout", "must be a whole number between 1 and 2147483647 ms", "got 0"],
  ],
  [
    "heartbeat in seconds",
    () => new Delayline({ heartbeat: 2 }),
    ["heartbeat", "must be a whole number between 1000 and 60000 ms", "got 2"],
  ],
  [
    "unreachableTimeout below 0",
    () => new Delayline({ unreachableTimeout: -1 }),
    ["unreachableTimeout", "must be between 0 and 946728000000 ms (30 years)", "got -1"],
  ],
  [
    "an instant as unreachableTimeout",
    () => new Delayline({ unreachableTimeout: NOW + 5000 }),
    [
      "unreachableTimeout",
      "must be between 0 and 946728000000 ms (30 years)",
      "got 1893456005000",
      "an instant? subtract Date.now()",
    ],
  ],
  [
    "a port for redis",
    () => new Delayline({ redis: 6379 } as never),
    ["redis", "must be a URL, ioredis options, or a Redis or Cluster of ioredis", "got number"],
  ],
  [
    "an address without a scheme",
    () => new Delayline({ redis: "localhost:6379" }),
    ["redis", "must be a URL that begins with redis:// or rediss://", ""],
  ],
  [
    "an address of HTTP",
    () => new Delayline({ redis: "http://localhost:6379" }),
    ["redis", "must be a URL that begins with redis:// or rediss://", ""],
  ],
  [
    "an empty address from the environment",
    () => new Delayline({ redis: "" }),
    ["redis", "must be a URL that begins with redis:// or rediss://", ""],
  ],
  [
    "null for redis",
    () => new Delayline({ redis: null } as never),
    ["redis", "must be a URL, ioredis options, or a Redis or Cluster of ioredis", "got null"],
  ],
  [
    "an address from a variable that is not set",
    () => new Delayline({ redis: undefined } as never),
    [
      "redis",
      "must be a URL, ioredis options, or a Redis or Cluster of ioredis",
      "got undefined",
      "an environment variable that is not set? Set it",
    ],
  ],
  [
    "one of several addresses that is not set",
    () => new Delayline({ redis: [undefined] } as never),
    [
      "redis",
      "must be a URL, ioredis options, or a Redis or Cluster of ioredis",
      "got undefined",
      "an environment variable that is not set? Set it",
    ],
  ],
  [
    "no address in a list",
    () => new Delayline({ redis: [] }),
    ["redis", "must name at least one server", "got none"],
  ],
  [
    "a misspelt option of ioredis",
    () => new Delayline({ redis: { hots: "localhost" } } as never),
    ["redis", "has an option that ioredis does not know", '"hots"', "did you mean host?"],
  ],
  [
    "user, as in other clients",
    () => new Delayline({ redis: { user: "app" } } as never),
    ["redis", "has an option that ioredis does not know", '"user"', "did you mean username?"],
  ],
  [
    "database, as in other clients",
    () => new Delayline({ redis: { database: 3 } } as never),
    ["redis", "has an option that ioredis does not know", '"database"', "did you mean db?"],
  ],
  [
    "a name for a database in the address",
    () => new Delayline({ redis: "redis://localhost/cache" }),
    ["redis", "must name a database by a whole number", "", "such as redis://localhost:6379/2"],
  ],
  [
    "a database from a variable that is not set",
    () => new Delayline({ redis: { db: Number(undefined) } }),
    [
      "db of redis",
      "must be a whole number between 0 and",
      "got NaN",
      "an environment variable that is not set? Set it",
    ],
  ],
  [
    "a database below 0",
    () => new Delayline({ redis: { db: -1 } }),
    ["db of redis", "must be a whole number between 0 and", "got -1"],
  ],
  [
    "a port from a variable that is not set",
    () => new Delayline({ redis: { port: Number(undefined) } }),
    [
      "port of redis",
      "must be a whole number between 1 and 65535",
      "got NaN",
      "an environment variable that is not set? Set it",
    ],
  ],
  [
    "a host from a variable that is not set",
    () => new Delayline({ redis: { host: undefined } }),
    ["host of redis", "must not be empty", "", "an environment variable that is not set? Set it"],
  ],
  [
    "a Map of options",
    () => new Delayline({ redis: new Map([["host", "localhost"]]) } as never),
    [
      "redis",
      "must be a URL, ioredis options, or a Redis or Cluster of ioredis",
      "got a Map",
      "give a plain object",
    ],
  ],
  [
    "a URL object",
    () => new Delayline({ redis: new URL("redis://localhost") } as never),
    [
      "redis",
      "must be a URL, ioredis options, or a Redis or Cluster of ioredis",
      "got a URL",
      "give its href",
    ],
  ],
  [
    "an address that is not awaited",
    () => new Delayline({ redis: Promise.resolve("redis://localhost") } as never),
    ["redis", "must be a URL, ioredis options, or a Redis or Cluster of ioredis", "got a Promise"],
  ],
  [
    "a misspelt option of startRedis",
    () => startRedis({ prot: 6379 } as never),
    ["startRedis option", "must be one of args, port, directory, env", 'got "prot"'],
  ],
  // Names of queues.
  [
    "no name",
    (its) => its.line.getDelayedQueue(undefined as never),
    ["queue name", "must be a string", "got undefined"],
  ],
  ["an empty name", (its) => its.line.getDelayedQueue(""), ["queue name", "must not be empty", ""]],
  [
    "a number for a name",
    (its) => its.line.getBlockingQueue(42 as never),
    ["queue name", "must be a string", "got number"],
  ],
  [
    "one brace in a name",
    (its) => its.line.getReliableQueue("a{b"),
    [
      "queue name",
      "must have no braces or a whole non-empty {tag}, or its keys land in different Cluster",
      'got "a{b"',
    ],
  ],
  [
    "the key of a queue as a name",
    (its) => its.line.getDelayedQueue("delayline_stream:{orders}"),
    [
      "queue name",
      "must not begin as the keys of queues do (delayline_stream:), or it could be the key of",
      'got "delayline_stream:{orders}"',
    ],
  ],
  ["a name in stats", (its) => its.line.stats(""), ["queue name", "must not be empty", ""]],
  // Options of a queue.
  [
    "a misspelt option of a queue",
    (its) => its.line.getDelayedQueue("q", { tranfser: true } as never),
    ["queue option", "must be one of codec", 'got "tranfser"', "did you mean transfer?"],
  ],
  [
    "a text for the options of a queue",
    (its) => its.line.getDelayedQueue("q", "json" as never),
    ["queue options", "must be an object", "got a string", "such as { codec }"],
  ],
  [
    "retry of a plain queue",
    (its) => its.line.getDelayedQueue("q", { retry: [1000] } as never),
    [
      "queue option",
      "must be one of codec",
      'got "retry"',
      "retry is an option of getReliableQueue",
    ],
  ],
  [
    "group of a plain queue",
    (its) => its.line.getBlockingQueue("q", { group: "mail" } as never),
    [
      "queue option",
      "must be one of codec",
      'got "group"',
      "group is an option of getReliableQueue",
    ],
  ],
  [
    "exclusive of a plain queue",
    (its) => its.line.getBlockingQueue("q", { exclusive: true } as never),
    ["exclusive", "must be left out of a plain queue", "", "use getReliableQueue"],
  ],
  [
    "attempts of a plain queue",
    (its) => its.line.getDelayedQueue("q", { attempts: 3 } as never),
    [
      "queue option",
      "must be one of codec",
      'got "attempts"',
      "use maxAttempts, an option of getReliableQueue",
    ],
  ],
  [
    "callTimeout of a queue",
    (its) => its.line.getDelayedQueue("q", { callTimeout: 5000 } as never),
    [
      "queue option",
      "must be one of codec",
      'got "callTimeout"',
      "callTimeout is an option of new Delayline",
    ],
  ],
  [
    "no partitions",
    (its) => its.line.getDelayedQueue("q", { partitions: 0 }),
    ["partitions", "must be a whole number between 1 and 256", "got 0"],
  ],
  [
    "too many partitions",
    (its) => its.line.getDelayedQueue("q", { partitions: 1000 }),
    ["partitions", "must be a whole number between 1 and 256", "got 1000"],
  ],
  [
    "partitions from the environment",
    (its) => its.line.getDelayedQueue("q", { partitions: "8" } as never),
    ["partitions", "must be a whole number", "got string", "convert it with Number"],
  ],
  [
    "shards instead of partitions",
    (its) => its.line.getDelayedQueue("q", { shards: 8 } as never),
    ["queue option", "must be one of codec", 'got "shards"', "did you mean partitions?"],
  ],
  [
    "partitions with interop",
    (its) => its.line.getDelayedQueue("q", { partitions: 8, interop: "redisson" }),
    ["interop", 'must be "none" for a partitioned queue', 'got "redisson"'],
  ],
  [
    "another codec than the open handle",
    (its) => its.line.getBlockingQueue(its.name, { codec: "json" }),
    [
      "codec of queue",
      'must be the same for all its handles in a client: the first one has "msgpack"',
      'got "json"',
      "give it to the first one, or leave it out here",
    ],
  ],
  [
    "another interop than the open handle",
    (its) => its.line.getDelayedQueue(its.name, { interop: "redisson" }),
    [
      "interop of queue",
      'must be the same for all its handles in a client: the first one has "none"',
      'got "redisson"',
      "give it to the first one, or leave it out here",
    ],
  ],
  // Options of a reliable queue.
  [
    "attempts, as in BullMQ",
    (its) => its.line.getReliableQueue("q", { attempts: 3 } as never),
    [
      "reliable queue option",
      "must be one of codec",
      'got "attempts"',
      "did you mean maxAttempts?",
    ],
  ],
  [
    "maxRetries, as in Celery",
    (its) => its.line.getReliableQueue("q", { max_retries: 3 } as never),
    [
      "reliable queue option",
      "must be one of codec",
      'got "max_retries"',
      "did you mean maxAttempts?",
    ],
  ],
  [
    "backoff, as in BullMQ",
    (its) => its.line.getReliableQueue("q", { backoff: 1000 } as never),
    ["reliable queue option", "must be one of codec", 'got "backoff"', "did you mean retry?"],
  ],
  [
    "lockDuration, as in BullMQ",
    (its) => its.line.getReliableQueue("q", { lockDuration: 30_000 } as never),
    [
      "reliable queue option",
      "must be one of codec",
      'got "lockDuration"',
      "did you mean leaseTimeout?",
    ],
  ],
  [
    "visibility_timeout, as in Celery",
    (its) => its.line.getReliableQueue("q", { visibility_timeout: 30_000 } as never),
    [
      "reliable queue option",
      "must be one of codec",
      'got "visibility_timeout"',
      "did you mean leaseTimeout?",
    ],
  ],
  [
    "expireInSeconds, as in pg-boss",
    (its) => its.line.getReliableQueue("q", { expireInSeconds: 30 } as never),
    [
      "reliable queue option",
      "must be one of codec",
      'got "expireInSeconds"',
      "did you mean leaseTimeout?",
    ],
  ],
  [
    "concurrency of the queue",
    (its) => its.line.getReliableQueue("q", { concurrency: 5 } as never),
    [
      "reliable queue option",
      "must be one of codec",
      'got "concurrency"',
      "concurrency is an option of subscribe",
    ],
  ],
  [
    "prefetch, as in RabbitMQ",
    (its) => its.line.getReliableQueue("q", { prefetch: 5 } as never),
    [
      "reliable queue option",
      "must be one of codec",
      'got "prefetch"',
      "use concurrency, an option of subscribe",
    ],
  ],
  [
    "groupId, as in Kafka",
    (its) => its.line.getReliableQueue("q", { groupId: "mail" } as never),
    ["reliable queue option", "must be one of codec", 'got "groupId"', "did you mean group?"],
  ],
  [
    "deadLetterQueue, as in SQS",
    (its) => its.line.getReliableQueue("q", { deadLetterQueue: "dead" } as never),
    [
      "reliable queue option",
      "must be one of codec",
      'got "deadLetterQueue"',
      "leave it out: a reliable queue keeps its dead letters itself, in deadLetters",
    ],
  ],
  [
    "limiter, as in BullMQ",
    (its) => its.line.getReliableQueue("q", { limiter: {} } as never),
    [
      "reliable queue option",
      "must be one of codec",
      'got "limiter"',
      "there is no rate limit: use concurrency, an option of subscribe",
    ],
  ],
  [
    "leaseTimeout in seconds",
    (its) => its.line.getReliableQueue("q", { leaseTimeout: 30 }),
    ["leaseTimeout", "must be a whole number between 100 and 86400000 ms", "got 30"],
  ],
  [
    "leaseTimeout with a unit",
    (its) => its.line.getReliableQueue("q", { leaseTimeout: "30s" } as never),
    ["leaseTimeout", "must be a whole number", "got string"],
  ],
  [
    "leaseTimeout of a week",
    (its) => its.line.getReliableQueue("q", { leaseTimeout: 7 * 86_400_000 }),
    ["leaseTimeout", "must be a whole number between 100 and 86400000 ms", "got 604800000"],
  ],
  [
    "maxAttempts of 0",
    (its) => its.line.getReliableQueue("q", { maxAttempts: 0 }),
    ["maxAttempts", "must be a whole number between 1 and 1000000", "got 0"],
  ],
  [
    "maxAttempts of Infinity",
    (its) => its.line.getReliableQueue("q", { maxAttempts: Infinity }),
    ["maxAttempts", "must be a whole number between 1 and 1000000", "got Infinity"],
  ],
  [
    "an empty group",
    (its) => its.line.getReliableQueue("q", { group: "" }),
    ["group", "must have 1 to 200 bytes of UTF-8", "got 0"],
  ],
  [
    "a number for a group",
    (its) => its.line.getReliableQueue("q", { group: 7 } as never),
    ["group", "must be a string", "got number"],
  ],
  [
    "start as in Kafka",
    (its) => its.line.getReliableQueue("q", { start: "latest" } as never),
    ["start", 'must be "0", "new" or a Date', 'got "latest"'],
  ],
  [
    "start as epoch milliseconds",
    (its) => its.line.getReliableQueue("q", { start: NOW } as never),
    ["start", 'must be "0", "new" or a Date', "got number"],
  ],
  [
    "start made from seconds",
    (its) => its.line.getReliableQueue("q", { start: new Date(1_900_000_000) }),
    [
      "start",
      "must be a plausible date",
      "got 1970-01-22T23:46:40.000Z",
      "made from seconds? a Date takes milliseconds",
    ],
  ],
  [
    "a number for retry",
    (its) => its.line.getReliableQueue("q", { retry: 5000 } as never),
    [
      "retry",
      "must be an array of milliseconds, an object with initial, or a function",
      "got number",
    ],
  ],
  [
    "a name for retry",
    (its) => its.line.getReliableQueue("q", { retry: "exponential" } as never),
    [
      "retry",
      "must be an array of milliseconds, an object with initial, or a function",
      "got string",
    ],
  ],
  [
    "no pause in retry",
    (its) => its.line.getReliableQueue("q", { retry: [] }),
    ["retry", "must have at least one pause", "got []"],
  ],
  [
    "a pause below 0",
    (its) => its.line.getReliableQueue("q", { retry: [1000, -1] }),
    ["retry[1]", "must be between 0 and 946728000000 ms (30 years)", "got -1"],
  ],
  [
    "a text for a pause",
    (its) => its.line.getReliableQueue("q", { retry: ["1s"] } as never),
    ["retry[0]", "must be a number of milliseconds", "got string"],
  ],
  [
    "delay in retry, as in BullMQ",
    (its) => its.line.getReliableQueue("q", { retry: { delay: 1000 } } as never),
    ["retry option", "must be one of initial", 'got "delay"', "did you mean initial?"],
  ],
  [
    "type in retry, as in BullMQ",
    (its) => its.line.getReliableQueue("q", { retry: { type: "exponential" } } as never),
    [
      "retry option",
      "must be one of initial",
      'got "type"',
      "the pauses grow by factor; with 1 they are equal",
    ],
  ],
  [
    "retry without initial",
    (its) => its.line.getReliableQueue("q", { retry: { factor: 2 } } as never),
    ["retry.initial", "must be a number of milliseconds", "got undefined"],
  ],
  [
    "a factor that shrinks",
    (its) => its.line.getReliableQueue("q", { retry: { initial: 1000, factor: 0.5 } }),
    ["retry.factor", "must be between 1 and 1000000", "got 0.5"],
  ],
  [
    "max below initial",
    (its) => its.line.getReliableQueue("q", { retry: { initial: 1000, max: 100 } }),
    ["retry.max", "must be at least retry.initial (1000 ms)", "got 100"],
  ],
  [
    "jitter in percent",
    (its) => its.line.getReliableQueue("q", { retry: { initial: 1000, jitter: 20 } }),
    ["retry.jitter", "must be between 0 and 1", "got 20"],
  ],
  [
    "exclusive from the environment",
    (its) => its.line.getReliableQueue("q", { exclusive: "true" } as never),
    ["exclusive", "must be a boolean", "got string"],
  ],
  [
    "strict without exclusive",
    (its) => its.line.getReliableQueue("q", { strict: true } as never),
    [
      "strict",
      "must be left out of a queue that is not exclusive",
      "got true",
      "set exclusive: true",
    ],
  ],
  [
    "another leaseTimeout in a group",
    (its) => its.line.getReliableQueue(its.reliable.name, { leaseTimeout: 5000 }),
    [
      "leaseTimeout of group",
      "must be the same for all its handles in a client: the first one has 30000",
      "got 5000",
      "give it to the first one, or leave it out here",
    ],
  ],
  [
    "another maxAttempts in a group",
    (its) => its.line.getReliableQueue(its.reliable.name, { maxAttempts: 3 }),
    [
      "maxAttempts of group",
      "must be the same for all its handles in a client: the first one has 8",
      "got 3",
      "give it to the first one, or leave it out here",
    ],
  ],
  // Offers.
  [
    "no delay",
    (its) => its.delayed.offer("x", undefined as never),
    [
      "delay",
      "must be a number of milliseconds",
      "got undefined",
      "call offer(payload, delay, options)",
    ],
  ],
  [
    "a delay from the environment",
    (its) => its.delayed.offer("x", "5000" as never),
    [
      "delay",
      "must be a number of milliseconds",
      "got string",
      "convert it with Number; call offer(payload, delay, options)",
    ],
  ],
  [
    "a delay that is not a number",
    (its) => its.delayed.offer("x", NaN),
    ["delay", "must be between 0 and 946728000000 ms (30 years)", "got NaN"],
  ],
  [
    "a delay below 0",
    (its) => its.delayed.offer("x", -5000),
    ["delay", "must be between 0 and 946728000000 ms (30 years)", "got -5000"],
  ],
  [
    "a delay of Infinity",
    (its) => its.delayed.offer("x", Infinity),
    ["delay", "must be between 0 and 946728000000 ms (30 years)", "got Infinity"],
  ],
  [
    "a bigint for a delay",
    (its) => its.delayed.offer("x", 5000n as never),
    [
      "delay",
      "must be a number of milliseconds",
      "got bigint",
      "call offer(payload, delay, options)",
    ],
  ],
  [
    "an instant as a delay",
    (its) => its.delayed.offer("x", NOW + 5000),
    [
      "delay",
      "must be between 0 and 946728000000 ms (30 years)",
      "got 1893456005000",
      "an instant? use offerAt; if it is meant, set anyTime",
    ],
  ],
  [
    "a date as a delay",
    (its) => its.reliable.offer("x", new Date(NOW) as never),
    ["delay", "must be a number of milliseconds", "got a Date", "an instant? use offerAt"],
  ],
  [
    "the delay in an object, as in BullMQ",
    (its) => its.delayed.offer("x", { delay: 5000 } as never),
    [
      "delay",
      "must be a number of milliseconds",
      "got object",
      "call offer(payload, delay, options)",
    ],
  ],
  [
    "delay before payload, as in setTimeout",
    (its) => its.delayed.offer(5000, { id: 1 } as never),
    [
      "delay",
      "must be a number of milliseconds",
      "got object",
      "call offer(payload, delay, options)",
    ],
  ],
  [
    "a unit for the options, as in Java",
    (its) => its.delayed.offer("x", 5, "SECONDS" as never),
    ["offer options", "must be an object", "got a string", "such as { key }"],
  ],
  [
    "jobId, as in BullMQ",
    (its) => its.delayed.offer("x", 5000, { jobId: "a" } as never),
    ["offer option", "must be one of key", 'got "jobId"', "did you mean key?"],
  ],
  [
    "singletonKey, as in pg-boss",
    (its) => its.delayed.offer("x", 5000, { singletonKey: "a" } as never),
    ["offer option", "must be one of key", 'got "singletonKey"', "did you mean key?"],
  ],
  [
    "deduplication, as in BullMQ",
    (its) => its.delayed.offer("x", 5000, { deduplication: { id: "a" } } as never),
    ["offer option", "must be one of key", 'got "deduplication"', "did you mean key?"],
  ],
  [
    "lifo, as in BullMQ",
    (its) => its.delayed.offer("x", 5000, { lifo: true } as never),
    [
      "offer option",
      "must be one of key",
      'got "lifo"',
      "messages become ready in the order of their deadlines; in a queue whose flow has lanes, the higher priority is first",
    ],
  ],
  [
    "delay among the options",
    (its) => its.delayed.offer("x", 5000, { delay: 5000 } as never),
    [
      "offer option",
      "must be one of key",
      'got "delay"',
      "a delay is the second argument of offer and reschedule, and an option of nack and redrive",
    ],
  ],
  [
    "attempts of an offer",
    (its) => its.reliable.offer("x", 5000, { attempts: 3 } as never),
    [
      "offer option",
      "must be one of key",
      'got "attempts"',
      "use maxAttempts, an option of getReliableQueue",
    ],
  ],
  [
    "backoff of an offer",
    (its) => its.reliable.offer("x", 5000, { backoff: 1000 } as never),
    [
      "offer option",
      "must be one of key",
      'got "backoff"',
      "use retry, an option of getReliableQueue",
    ],
  ],
  [
    "removeOnComplete, as in BullMQ",
    (its) => its.reliable.offer("x", 5000, { removeOnComplete: true } as never),
    [
      "offer option",
      "must be one of key",
      'got "removeOnComplete"',
      "leave it out: an acknowledged message is gone",
    ],
  ],
  [
    "repeat, as in BullMQ",
    (its) => its.delayed.offer("x", 5000, { repeat: {} } as never),
    [
      "offer option",
      "must be one of key",
      'got "repeat"',
      "messages that recur are offered by queue.schedules",
    ],
  ],
  [
    "ttl, as in RabbitMQ",
    (its) => its.delayed.offer("x", 5000, { ttl: 5000 } as never),
    [
      "offer option",
      "must be one of key",
      'got "ttl"',
      "messages do not expire; with deliverWithin, an option of an offer, one that comes too late is dropped",
    ],
  ],
  [
    "messageGroupId, as in SQS",
    (its) => its.delayed.offer("x", 5000, { messageGroupId: "a" } as never),
    ["offer option", "must be one of key", 'got "messageGroupId"', "did you mean partitionKey?"],
  ],
  [
    "headers of a plain queue",
    (its) => its.delayed.offer("x", 5000, { headers: {} } as never),
    [
      "offer option",
      "must be one of key",
      'got "headers"',
      "headers is an option of an offer to a reliable queue",
    ],
  ],
  [
    "a number for a key",
    (its) => its.delayed.offer("x", 5000, { key: 42 } as never),
    ["key", "must be a string", "got number", "convert it with String"],
  ],
  [
    "an empty key",
    (its) => its.delayed.offer("x", 5000, { key: "" }),
    ["key", "must have 1 to 200 bytes of UTF-8", "got 0"],
  ],
  [
    "a key that is too long",
    (its) => its.delayed.offer("x", 5000, { key: "x".repeat(201) }),
    ["key", "must have 1 to 200 bytes of UTF-8", "got 201"],
  ],
  [
    "an id for a key",
    (its) => its.delayed.offer("x", 5000, { key: ID }),
    [
      "key",
      "must not look like a message id (<deadline>-<hex>)",
      'got "1755757960123-0102030405060708090a0b0c0d0e0f10"',
    ],
  ],
  [
    "onDuplicate without a key",
    (its) => its.delayed.offer("x", 5000, { onDuplicate: "replace" }),
    ["onDuplicate", "needs a key", ""],
  ],
  [
    "onDuplicate as in SQL",
    (its) => its.delayed.offer("x", 5000, { key: "k", onDuplicate: "nothing" } as never),
    ["onDuplicate", 'must be "ignore", "replace", "update" or "collect"', 'got "nothing"'],
  ],
  [
    "collecting in a plain queue",
    (its) => its.delayed.offer("x", 5000, { key: "k", onDuplicate: "collect" }),
    ["onDuplicate", "needs a reliable queue", ""],
  ],
  [
    "maxWait without replace",
    (its) => its.delayed.offer("x", 5000, { key: "k", maxWait: 9000 }),
    ["maxWait", 'goes with onDuplicate "replace"', 'got "ignore"'],
  ],
  [
    "an instant as maxWait",
    (its) => its.delayed.offer("x", 5000, { key: "k", onDuplicate: "replace", maxWait: NOW }),
    [
      "maxWait",
      "must be between 0 and 946728000000 ms (30 years)",
      "got 1893456000000",
      "an instant? subtract Date.now()",
    ],
  ],
  [
    "a number for a partition key",
    (its) => its.delayed.offer("x", 5000, { partitionKey: 7 } as never),
    ["partitionKey", "must be a string", "got number", "convert it with String"],
  ],
  [
    "a controller for a signal",
    (its) => its.delayed.offer("x", 5000, { signal: new AbortController() } as never),
    ["signal", "must be an AbortSignal", "got a controller", "pass its signal"],
  ],
  [
    "a number for a header",
    (its) => its.reliable.offer("x", 5000, { headers: { n: 1 } } as never),
    ['header "n"', "must be a string", "got number"],
  ],
  [
    "a payload that contains itself",
    (its) => its.delayed.offer(circular(), 5000),
    ["cannot encode a payload", "payload.lines[0].order is payload itself", 'codec "msgpack"'],
  ],
  [
    "a Map for a payload",
    (its) => its.delayed.offer({ tags: new Map() }, 5000),
    ["cannot encode a payload", "has no MessagePack form", "an instance of Map at payload.tags"],
  ],
  [
    "a function in a payload",
    (its) => its.delayed.offer({ done: () => {} }, 5000),
    ["cannot encode a payload", "has no MessagePack form", "a function at payload.done"],
  ],
  [
    "a payload that is too large",
    (its) => its.delayed.offer(Buffer.alloc(1_048_577), 5000),
    ["a payload for queue", "maxPayloadBytes is 1048576", "has 1048582 bytes"],
  ],
  [
    "an object for the codec string",
    (its) => its.line.getDelayedQueue("s", { codec: "string" }).offer({} as never, 5000),
    ["cannot encode a payload", "the string codec takes strings", "got object"],
  ],
  [
    "seconds as an instant",
    (its) => its.delayed.offerAt("x", 1_900_000_000),
    [
      "at",
      "must be between 100000000000 and 253402300799999 epoch milliseconds (1973 to 9999)",
      "got 1900000000",
      "a delay? use offer; epoch is in milliseconds; if it is meant, set anyTime",
    ],
  ],
  [
    "a delay as an instant",
    (its) => its.reliable.offerAt("x", 60_000),
    [
      "at",
      "must be between 100000000000 and 253402300799999 epoch milliseconds (1973 to 9999)",
      "got 60000",
      "a delay? use offer; epoch is in milliseconds; if it is meant, set anyTime",
    ],
  ],
  [
    "microseconds as an instant",
    (its) => its.delayed.offerAt("x", NOW * 1000),
    [
      "at",
      "must be between 100000000000 and 253402300799999 epoch milliseconds (1973 to 9999)",
      "got 1893456000000000",
      "epoch is in milliseconds; if it is meant, set anyTime",
    ],
  ],
  [
    "a date made from seconds",
    (its) => its.delayed.offerAt("x", new Date(1_900_000_000)),
    [
      "at",
      "must be a plausible date",
      "got 1970-01-22T23:46:40.000Z",
      "made from seconds? a Date takes milliseconds; if it is meant, set anyTime",
    ],
  ],
  [
    "a text for an instant",
    (its) => its.delayed.offerAt("x", "2030-01-01" as never),
    [
      "at",
      "must be a Date, a number of epoch milliseconds or { local, timeZone }",
      "got string",
      "convert it with new Date",
    ],
  ],
  [
    "an invalid date",
    (its) => its.delayed.offerAt("x", new Date("soon")),
    ["at", "must be a valid date", "got Invalid Date"],
  ],
  [
    "a date before 1970",
    (its) => its.delayed.offerAt("x", new Date(-1)),
    ["at", "must not be before 1970", "got 1969-12-31T23:59:59.999Z"],
  ],
  [
    "no instant",
    (its) => its.delayed.offerAt("x", undefined as never),
    [
      "at",
      "must be a Date, a number of epoch milliseconds or { local, timeZone }",
      "got undefined",
    ],
  ],
  [
    "one message for offerMany",
    (its) => its.delayed.offerMany({ payload: "x", delay: 5 } as never),
    [
      "messages",
      "must be an array or another iterable object",
      "got object",
      "put a single one into an array",
    ],
  ],
  [
    "a payload without its delay",
    (its) => its.delayed.offerMany([{ payload: "x" }] as never),
    ["messages[0]", "must have either delay or at", "got neither"],
  ],
  [
    "a delay without its payload",
    (its) => its.delayed.offerMany([{ delay: 5 }] as never),
    ["messages[0]", "must have a payload", ""],
  ],
  [
    "payloads for offerMany",
    (its) => its.delayed.offerMany(["x"] as never),
    ["messages[0]", "must be an object", "got string"],
  ],
  [
    "an instant as a delay of offerMany",
    (its) => its.delayed.offerMany([{ payload: "x", delay: NOW }]),
    [
      "messages[0].delay",
      "must be between 0 and 946728000000 ms (30 years)",
      "got 1893456000000",
      "an instant? use at; if it is meant, set anyTime",
    ],
  ],
  [
    "data instead of payload, as in BullMQ",
    (its) => its.delayed.offerMany([{ data: "x", delay: 5 }] as never),
    ["property of messages[0]", "must be one of payload", 'got "data"', "did you mean payload?"],
  ],
  [
    "a misspelt key in offerMany",
    (its) => its.delayed.offerMany([{ payload: "x", delay: 5, kye: "k" }] as never),
    ["property of messages[0]", "must be one of payload", 'got "kye"', "did you mean key?"],
  ],
  [
    "a message of offerMany with delay and at",
    (its) => its.delayed.offerMany([{ payload: "x", delay: 5, at: new Date() } as never]),
    ["messages[0]", "must have either delay or at", "got both"],
  ],
  [
    "a delay as at",
    (its) => its.delayed.offerMany([{ payload: "x", at: 5000 }]),
    ["messages[0].at", "must be between 100000000000", "got 5000", "a delay? use delay"],
  ],
  // Finding and changing.
  [
    "the result of an offer for its id",
    (its) => its.delayed.cancel(RESULT as never),
    ["key", "must be a string", "got object", "of the result of an offer pass its id"],
  ],
  [
    "the promise of an offer",
    (its) => its.delayed.cancel(Promise.resolve(RESULT) as never),
    ["key", "must be a string", "got a Promise", "await it"],
  ],
  [
    "nothing for an id",
    (its) => its.delayed.cancel(undefined as never),
    ["key", "must be a string", "got undefined"],
  ],
  [
    "a number for an id",
    (its) => its.delayed.get(42 as never),
    ["key", "must be a string", "got number", "convert it with String"],
  ],
  [
    "the result of an offer in get",
    (its) => its.reliable.get(RESULT as never),
    ["key", "must be a string", "got object", "of the result of an offer pass its id"],
  ],
  [
    "the result of an offer in reschedule",
    (its) => its.reliable.reschedule(RESULT as never, 5000),
    ["key", "must be a string", "got object", "of the result of an offer pass its id"],
  ],
  [
    "an id in has of a plain queue",
    (its) => its.delayed.has(ID),
    [
      "key",
      "must not look like a message id (<deadline>-<hex>)",
      'got "1755757960123-0102030405060708090a0b0c0d0e0f10"',
    ],
  ],
  [
    "no new delay",
    (its) => its.delayed.reschedule("k", undefined as never),
    [
      "delay",
      "must be a number of milliseconds",
      "got undefined",
      "call reschedule(idOrKey, delay, options)",
    ],
  ],
  [
    "an instant as a new delay",
    (its) => its.delayed.reschedule("k", NOW),
    [
      "delay",
      "must be between 0 and 946728000000 ms (30 years)",
      "got 1893456000000",
      "an instant? use rescheduleAt; if it is meant, set anyTime",
    ],
  ],
  [
    "a date as a new delay",
    (its) => its.delayed.reschedule("k", new Date() as never),
    ["delay", "must be a number of milliseconds", "got a Date", "an instant? use rescheduleAt"],
  ],
  [
    "seconds as a new instant",
    (its) => its.delayed.rescheduleAt("k", 1_900_000_000),
    [
      "at",
      "must be between 100000000000 and 253402300799999 epoch milliseconds (1973 to 9999)",
      "got 1900000000",
      "a delay? use reschedule; epoch is in milliseconds; if it is meant, set anyTime",
    ],
  ],
  [
    "one id for cancelMany",
    (its) => its.delayed.cancelMany("order:42"),
    [
      "idsOrKeys",
      "must be an array or another iterable object",
      "got string",
      "put a single one into an array",
    ],
  ],
  [
    "a text for cancelWhere",
    (its) => its.delayed.cancelWhere("order:" as never),
    ["conditions", "must be an object", "got a string", "such as { prefix }"],
  ],
  [
    "an empty prefix",
    (its) => its.delayed.cancelWhere({ prefix: "" }),
    ["prefix", "must be a non-empty string", "got an empty one"],
  ],
  [
    "a pattern instead of a prefix",
    (its) => its.delayed.cancelWhere({ pattern: "order:*" } as never),
    ["condition", "must be one of prefix", 'got "pattern"', "did you mean prefix?"],
  ],
  [
    "a misspelt dry run",
    (its) => its.delayed.cancelWhere({ prefix: "a" }, { dryrun: true } as never),
    ["cancelWhere option", "must be one of dryRun", 'got "dryrun"', "did you mean dryRun?"],
  ],
  [
    "a text for a limit",
    (its) => its.delayed.soonest("10" as never),
    ["limit", "must be a whole number", "got string", "convert it with Number"],
  ],
  [
    "seconds in a forecast",
    (its) => its.delayed.forecast({ from: 1_900_000_000, step: 1000, count: 1 }),
    [
      "from",
      "must be between 100000000000 and 253402300799999 epoch milliseconds (1973 to 9999)",
      "got 1900000000",
      "a delay? add Date.now(); epoch is in milliseconds",
    ],
  ],
  [
    "no step in a forecast",
    (its) => its.delayed.forecast({ count: 24 } as never),
    ["step", "must be a whole number", "got undefined"],
  ],
  [
    "too many spans in a forecast",
    (its) => its.delayed.forecast({ step: 1000, count: 5000 }),
    ["count", "must be a whole number between 1 and 1000", "got 5000"],
  ],
  // Taking.
  [
    "a timeout from the environment",
    (its) => its.blocking.poll("5000" as never),
    [
      "timeout",
      "must be a number of milliseconds",
      "got string",
      "convert it with Number; call poll(timeout, options)",
    ],
  ],
  [
    "an endless poll",
    (its) => its.blocking.poll(Infinity),
    [
      "timeout",
      "must be between 0 and 946728000000 ms (30 years)",
      "got Infinity",
      "no limit? use take",
    ],
  ],
  [
    "an instant as a timeout",
    (its) => its.blocking.poll(NOW + 5000),
    [
      "timeout",
      "must be between 0 and 946728000000 ms (30 years)",
      "got 1893456005000",
      "an instant? subtract Date.now()",
    ],
  ],
  [
    "a date as a timeout",
    (its) => its.reliable.poll(new Date() as never),
    [
      "timeout",
      "must be a number of milliseconds",
      "got a Date",
      "an instant? subtract Date.now()",
    ],
  ],
  [
    "a timeout in an object",
    (its) => its.blocking.poll({ timeout: 5000 } as never),
    ["timeout", "must be a number of milliseconds", "got object", "call poll(timeout, options)"],
  ],
  [
    "a timeout of take",
    (its) => its.blocking.take({ timeout: 5000 } as never),
    ["take option", "must be one of signal", 'got "timeout"', "timeout is an option of takeMany"],
  ],
  [
    "a number for take",
    (its) => its.reliable.take(5000 as never),
    ["take options", "must be an object", "got 5000", "such as { signal }"],
  ],
  [
    "a controller in take",
    (its) => its.blocking.take({ signal: new AbortController() } as never),
    ["signal", "must be an AbortSignal", "got a controller", "pass its signal"],
  ],
  [
    "a number for takeMany",
    (its) => its.blocking.takeMany(10 as never),
    ["takeMany options", "must be an object", "got 10", "such as { limit }"],
  ],
  [
    "takeMany without limit",
    (its) => its.blocking.takeMany({} as never),
    ["limit", "must be a whole number", "got undefined"],
  ],
  [
    "takeMany of none",
    (its) => its.blocking.takeMany({ limit: 0 }),
    ["limit", "must be a whole number between 1 and 10000", "got 0"],
  ],
  [
    "batchSize, as in SQS",
    (its) => its.reliable.takeMany({ batchSize: 10 } as never),
    ["takeMany option", "must be one of limit", 'got "batchSize"', "did you mean limit?"],
  ],
  [
    "takeMany without end",
    (its) => its.blocking.takeMany({ limit: 1, timeout: Infinity }),
    [
      "timeout",
      "must be between 0 and 946728000000 ms (30 years)",
      "got Infinity",
      "no limit? leave it out",
    ],
  ],
  [
    "one name for pollFromAny",
    (its) => its.blocking.pollFromAny("other" as never),
    ["queues", "must be an array", "got string"],
  ],
  [
    "drain of a negative number",
    (its) => its.blocking.drain(-1),
    ["limit", "must be a whole number between 0 and 9007199254740991", "got -1"],
  ],
  [
    "putMany of a text",
    (its) => its.blocking.putMany("abc" as never),
    [
      "payloads",
      "must be an array or another iterable object",
      "got string",
      "put a single one into an array",
    ],
  ],
  [
    "no handler",
    (its) => its.blocking.subscribe(undefined as never),
    ["handler", "must be a function", "got undefined"],
  ],
  [
    "the result of a handler",
    (its) => its.reliable.subscribe(Promise.resolve() as never),
    ["handler", "must be a function", "got a Promise"],
  ],
  [
    "concurrency of 0",
    (its) => its.blocking.subscribe(() => {}, { concurrency: 0 }),
    ["concurrency", "must be a whole number between 1 and 10000", "got 0"],
  ],
  [
    "concurrency from the environment",
    (its) => its.reliable.subscribe(() => {}, { concurrency: "10" } as never),
    ["concurrency", "must be a whole number", "got string", "convert it with Number"],
  ],
  [
    "prefetch of subscribe",
    (its) => its.reliable.subscribe(() => {}, { prefetch: 10 } as never),
    [
      "subscribe option",
      "must be one of concurrency",
      'got "prefetch"',
      "did you mean concurrency?",
    ],
  ],
  [
    "autoAck, as in RabbitMQ",
    (its) => its.reliable.subscribe(() => {}, { autoAck: true } as never),
    [
      "subscribe option",
      "must be one of concurrency",
      'got "autoAck"',
      "leave it out: subscribe acknowledges when the handler returns, take never does",
    ],
  ],
  [
    "no function for onError",
    (its) => its.blocking.subscribe(() => {}, { onError: "log" } as never),
    ["onError", "must be a function", "got string"],
  ],
  [
    "orderBy of a plain queue",
    (its) => its.blocking.subscribe(() => {}, { orderBy: String } as never),
    [
      "subscribe option",
      "must be one of concurrency",
      'got "orderBy"',
      "orderBy is an option of subscribe of a reliable queue",
    ],
  ],
  [
    "a name for orderBy",
    (its) => its.reliable.subscribe(() => {}, { orderBy: "key" } as never),
    ["orderBy", "must be a function", "got string"],
  ],
  [
    "a batch without max",
    (its) => its.reliable.subscribeBatch(() => {}, {} as never),
    ["limit", "must be a whole number", "got undefined"],
  ],
  [
    "routes without handlers",
    (its) => its.reliable.route({ a: "b" } as never),
    ['the handler of route "a"', "must be a function", "got string"],
  ],
  [
    "unknown of another kind",
    (its) => its.reliable.route({ a: () => {} }, { unknown: "drop" } as never),
    ["unknown", 'must be "reject", "ack" or "leave"', 'got "drop"'],
  ],
  [
    "visibilityTimeout",
    (its) => its.line.getReliableQueue("q", { visibilityTimeout: 30_000 } as never),
    [
      "reliable queue option",
      "must be one of codec",
      'got "visibilityTimeout"',
      "did you mean leaseTimeout?",
    ],
  ],
  [
    "maxDeliveryCount",
    (its) => its.line.getReliableQueue("q", { maxDeliveryCount: 8 } as never),
    [
      "reliable queue option",
      "must be one of codec",
      'got "maxDeliveryCount"',
      "did you mean maxAttempts?",
    ],
  ],
  [
    "max of takeMany",
    (its) => its.blocking.takeMany({ max: 10 } as never),
    ["takeMany option", "must be one of limit", 'got "max"', "did you mean limit?"],
  ],
  [
    "max of subscribeBatch",
    (its) => its.reliable.subscribeBatch(() => {}, { max: 10 } as never),
    ["subscribe option", "must be one of concurrency", 'got "max"', "did you mean limit?"],
  ],
  [
    "a timeout of subscribe",
    (its) => its.reliable.subscribe(() => {}, { timeout: 5000 } as never),
    ["subscribe option", "must be one of concurrency", 'got "timeout"', "did you mean timeLimit?"],
  ],
  [
    "a time limit of a plain queue",
    (its) => its.blocking.subscribe(() => {}, { timeLimit: 5000 } as never),
    [
      "subscribe option",
      "must be one of concurrency",
      'got "timeLimit"',
      "timeLimit is an option of subscribe of a reliable queue",
    ],
  ],
  [
    "no time at all",
    (its) => its.reliable.subscribe(() => {}, { timeLimit: 0 }),
    ["timeLimit", "must be above 0", "got 0"],
  ],
  [
    "a time limit without end",
    (its) => its.reliable.subscribe(() => {}, { timeLimit: Infinity }),
    [
      "timeLimit",
      "must be between 0 and 946728000000 ms (30 years)",
      "got Infinity",
      "no limit? leave it out",
    ],
  ],
  [
    "maxWait of a batch",
    (its) => its.blocking.subscribeBatch(() => {}, { limit: 10, maxWait: 500 } as never),
    ["subscribe option", "must be one of concurrency", 'got "maxWait"', "did you mean wait?"],
  ],
  [
    "a batch that waits for ever",
    (its) => its.blocking.subscribeBatch(() => {}, { limit: 10, wait: Infinity }),
    ["wait", "must be between 0 and 946728000000 ms (30 years)", "got Infinity"],
  ],
  // Deliveries and dead letters.
  [
    "a delay for nack",
    (its) => its.delivery.nack(5000 as never),
    ["nack options", "must be an object", "got 5000", "such as { delay }"],
  ],
  [
    "a date for nack",
    (its) => its.delivery.nack({ delay: new Date() as never }),
    ["delay", "must be a number of milliseconds", "got a Date", "an instant? subtract Date.now()"],
  ],
  [
    "an instant for nack",
    (its) => its.delivery.nack({ delay: NOW }),
    [
      "delay",
      "must be between 0 and 946728000000 ms (30 years)",
      "got 1893456000000",
      "an instant? subtract Date.now()",
    ],
  ],
  [
    "error instead of reason",
    (its) => its.delivery.nack({ error: new Error("x") } as never),
    ["nack option", "must be one of delay", 'got "error"', "did you mean reason?"],
  ],
  [
    "a number for a reason",
    (its) => its.delivery.nack({ reason: 5 } as never),
    ["reason", "must be a string or an Error", "got number"],
  ],
  [
    "a delay for ack",
    (its) => its.delivery.ack({ delay: 5 } as never),
    [
      "call option",
      "must be one of signal",
      'got "delay"',
      "a delay is the second argument of offer and reschedule, and an option of nack and redrive",
    ],
  ],
  [
    "requeue for reject, as in RabbitMQ",
    (its) => its.delivery.reject(true as never),
    ["reason", "must be a string or an Error", "got boolean"],
  ],
  [
    "no duration for extend",
    (its) => its.delivery.extend(undefined as never),
    ["duration", "must be a number of milliseconds", "got undefined"],
  ],
  [
    "a unit for extend",
    (its) => its.delivery.extend("30s" as never),
    ["duration", "must be a number of milliseconds", "got string"],
  ],
  [
    "a lease without end",
    (its) => its.delivery.extend(Infinity),
    ["duration", "must be between 0 and 946728000000 ms (30 years)", "got Infinity"],
  ],
  [
    "a lease until an instant",
    (its) => its.delivery.extend(NOW + 5000),
    [
      "duration",
      "must be between 0 and 946728000000 ms (30 years)",
      "got 1893456005000",
      "an instant? subtract Date.now()",
    ],
  ],
  [
    "a key for redrive",
    (its) => its.reliable.deadLetters.redrive("order:42"),
    ["id", 'must be a message id (<deadline>-<hex>) or "all"', 'got "order:42"'],
  ],
  [
    "nothing for redrive",
    (its) => its.reliable.deadLetters.redrive(undefined as never),
    ["id", 'must be a message id (<deadline>-<hex>) or "all"', "got undefined"],
  ],
  [
    "a delay for redrive",
    (its) => its.reliable.deadLetters.redrive("all", 5000 as never),
    ["redrive options", "must be an object", "got 5000", "such as { delay }"],
  ],
  [
    "a date for redrive",
    (its) => its.reliable.deadLetters.redrive("all", { delay: new Date() as never }),
    ["delay", "must be a number of milliseconds", "got a Date", "an instant? subtract Date.now()"],
  ],
  [
    "all for remove",
    (its) => its.reliable.deadLetters.remove("all"),
    ["id", "must be a message id (<deadline>-<hex>)", 'got "all"'],
  ],
  // Closing and partitions.
  [
    "a number for close",
    (its) => its.line.close(5000 as never),
    ["close options", "must be an object", "got 5000", "such as { handlerTimeout }"],
  ],
  [
    "close with a unit",
    (its) => its.line.close({ handlerTimeout: "5s" } as never),
    ["handlerTimeout", "must be a number of milliseconds", "got string"],
  ],
  [
    "close until an instant",
    (its) => its.line.close({ handlerTimeout: NOW + 5000 }),
    [
      "handlerTimeout",
      "must be between 0 and 946728000000 ms (30 years)",
      "got 1893456005000",
      "an instant? subtract Date.now()",
    ],
  ],
  [
    "timeout of close, its old name",
    (its) => its.line.close({ timeout: 5000 } as never),
    [
      "close option",
      "must be one of handlerTimeout",
      'got "timeout"',
      "did you mean handlerTimeout?",
    ],
  ],
  [
    "force, as in BullMQ",
    (its) => its.line.close({ force: true } as never),
    [
      "close option",
      "must be one of handlerTimeout",
      'got "force"',
      "did you mean handlerTimeout?",
    ],
  ],
  [
    "closeSubscriptions below 0",
    (its) => its.line.closeSubscriptions({ handlerTimeout: -1 }),
    ["handlerTimeout", "must be between 0 and 946728000000 ms (30 years)", "got -1"],
  ],
  [
    "no partitions to set",
    (its) => its.line.setPartitions("p", 0),
    ["count", "must be a whole number between 1 and 256", "got 0"],
  ],
  [
    "a text for partitions to set",
    (its) => its.line.setPartitions("p", "8" as never),
    ["count", "must be a whole number", "got string", "convert it with Number"],
  ],
  [
    "too many partitions to set",
    (its) => its.line.setPartitions("p", 257),
    ["count", "must be a whole number between 1 and 256", "got 257"],
  ],
  [
    "an unknown option of setPartitions",
    (its) => its.line.setPartitions("p", 8, { force: true } as never),
    ["setPartitions option", "must be one of onProgress", 'got "force"', "leave it out"],
  ],
  [
    "terminate, as in Celery",
    (its) => its.reliable.revoke("k", { terminate: true } as never),
    [
      "revoke option",
      "must be one of reason",
      'got "terminate"',
      "aborts the signal of its handler",
    ],
  ],
  [
    "cancelRunning of cancel",
    (its) => its.reliable.cancel("k", { cancelRunning: true } as never),
    ["option", "must be", 'got "cancelRunning"', "revoke of a reliable queue stops a message"],
  ],
  [
    "discard, as in BullMQ",
    (its) => its.delivery.nack({ discard: true } as never),
    [
      "nack option",
      "must be one of",
      'got "discard"',
      "reject of a delivery makes it a dead letter",
    ],
  ],
  [
    "obliterate, as in BullMQ",
    (its) => its.reliable.clear({ obliterate: true } as never),
    ["option", "must be", 'got "obliterate"', "clear of a queue removes all its messages"],
  ],
  [
    "onCancelled of subscribe",
    (its) => its.reliable.subscribe(() => {}, { onCancelled: () => {} } as never),
    [
      "subscribe option",
      "must be one of",
      'got "onCancelled"',
      "the signal of a delivery is aborted",
    ],
  ],
  ["use after close", async (its) => await its.closed.offer("x", 5), ["queue", "is closed", ""]],
  // Dashboard, Prometheus, NestJS, codecs of Redisson.
  [
    "a misspelt option of the dashboard",
    () => dashboard({ readonly: false } as never),
    ["dashboard option", "must be one of redis", 'got "readonly"', "did you mean readOnly?"],
  ],
  [
    "a text for readOnly",
    () => dashboard({ readOnly: "false" } as never),
    ["readOnly", "must be a boolean", "got string"],
  ],
  [
    "a password for authorize",
    () => dashboard({ authorize: "admin" } as never),
    ["authorize", "must be a function", "got string"],
  ],
  [
    "a base path without a slash",
    () => dashboard({ basePath: "admin" }),
    ["basePath", 'must be a string that begins with "/"', 'got "admin"'],
  ],
  [
    "a port from the environment",
    () => serveDashboard({ port: "8080" } as never),
    ["port", "must be a whole number", "got string", "convert it with Number"],
  ],
  [
    "a port that is none",
    () => serveDashboard({ port: 70_000 }),
    ["port", "must be a whole number between 0 and 65535", "got 70000"],
  ],
  [
    "a dashboard for everybody",
    () => serveDashboard({ host: "0.0.0.0" }),
    ["authorize", "must be given to serve on", '"0.0.0.0"', "everyone who can reach that address"],
  ],
  [
    "no registry for metrics",
    (its) => collectMetrics(its.line, { queues: "all" } as never),
    ["registry", "must be a Registry of prom-client", "got undefined"],
  ],
  [
    "one name for queues",
    (its) => collectMetrics(its.line, { registry: REGISTRY, queues: "orders" } as never),
    [
      "queues",
      "must be an array or another iterable object",
      "got string",
      "put a single one into an array",
    ],
  ],
  [
    "a prefix that no metric can have",
    (its) => collectMetrics(its.line, { registry: REGISTRY, queues: [], prefix: "1-" }),
    ["prefix", "must be the beginning of a metric's name", 'got "1-"'],
  ],
  [
    "a scrape of a minute and more",
    (its) => collectMetrics(its.line, { registry: REGISTRY, queues: [], timeout: 90_000 }),
    ["timeout", "must be a whole number between 1 and 60000", "got 90000"],
  ],
  [
    "a kind of queue that is not there",
    (its) => openQueue(its.line, { name: "q", kind: "fifo" } as never),
    [
      "kind of a queue",
      'must be "plain", "delayed", "blocking" or "reliable"',
      'got "fifo" for queue "q"',
    ],
  ],
  [
    "a misspelt option of a codec",
    () => new JsonJacksonCodec({ classof: () => undefined } as never),
    ["codec option", "must be one of classOf", 'got "classof"', "did you mean classOf?"],
  ],
  [
    "a text for the codec of longs",
    (its) => its.line.getDelayedQueue("l", { codec: new LongCodec() }).offer("5" as never, 5),
    ["cannot encode a payload", "LongCodec takes whole numbers", "got string"],
  ],
  // The command line.
  [
    "a misspelt command",
    "cancle q k",
    ["there is no command", "", '"cancle"', "did you mean cancel?"],
  ],
  [
    "cancel-job, as in BullMQ",
    "cancel-job q k",
    ["there is no command", "", '"cancel-job"', "did you mean revoke?"],
  ],
  [
    "remove, as in many tools",
    "remove q k",
    ["there is no command", "", '"remove"', "did you mean cancel, or revoke for what is ready"],
  ],
  [
    "stop, which is near top",
    "stop q k",
    ["there is no command", "", '"stop"', "did you mean revoke?"],
  ],
  [
    "a misspelt option of the command line",
    "list q --limt 3",
    ["list", "has no option", "--limt", "did you mean --limit?"],
  ],
  [
    "an option of redis-cli",
    "queues --host localhost",
    ["queues", "has no option", "--host", "did you mean --redis?"],
  ],
  [
    "a URL without --redis",
    "queues --url redis://localhost",
    ["queues", "has no option", "--url", "did you mean --redis?"],
  ],
  [
    "an address that is none, on the command line",
    "queues --redis localhost:6379",
    ["--redis", "must be a URL such as redis://localhost:6379 or rediss://...", ""],
  ],
  [
    "a state that is not there",
    "list q --state wating",
    ["--state", "must be delayed, retrying, ready, in-flight or dead", 'got "wating"'],
  ],
  [
    "a number for --in",
    "reschedule q k --in 5000",
    ["--in", "must be a duration such as 500ms, 30s, 15m, 1h30m, 7d or 2w", 'got "5000"'],
  ],
  [
    "an instant for --in",
    "reschedule q k --in 1795448324000ms",
    [
      "--in",
      "must be between 0 and 946728000000 ms (30 years)",
      "got 1795448324000",
      "an instant? use --at",
    ],
  ],
  [
    "seconds for --at",
    "reschedule q k --at 1900000000",
    [
      "--at",
      'must be a time such as 09:00, "tomorrow 09:00" or "monday 09:00", a date such as',
      'got "1900000000"',
    ],
  ],
  [
    "microseconds for --at",
    "reschedule q k --at 1795448324000000",
    [
      "--at",
      "must be between the years 1970 and 9999",
      'got "1795448324000000"',
      "epoch is in milliseconds",
    ],
  ],
  ["neither --in nor --at", "reschedule q k", ["give either", "--in or --at", ""]],
  ["no queue", "cancel", ["usage: delayline cancel", "<queue>", ""]],
  [
    "a key for dead redrive",
    "dead redrive q order:42",
    ['"order:42"', "is not a message id", "", "dead letters are not found by key"],
  ],
  [
    "a misspelt word of dead",
    "dead redirve q",
    [
      "dead",
      "must be followed by list, reasons, redrive, remove",
      'got "redirve"',
      "did you mean redrive?",
    ],
  ],
  [
    "a mode of interop that is not there",
    "queues --interop java",
    ["--interop", "must be none or redisson", 'got "java"'],
  ],
  [
    "a timeout without a unit",
    "queues --timeout 5000",
    ["--timeout", "must be a duration such as 500ms, 30s, 15m, 1h30m, 7d or 2w", 'got "5000"'],
  ],
  [
    "a count that is none",
    "list q --limit many",
    ["--limit", "must be a whole number between 1 and 9007199254740991", 'got "many"'],
  ],
];

/** Mistakes that are accepted, and why. */
export const ACCEPTED: readonly (readonly [
  mistake: string,
  call: (its: Bench) => unknown,
  reason: string,
])[] = [
  [
    "epoch seconds as a delay",
    (its) => its.accepted.offer("x", 1_900_000_000),
    "as a delay they are 22 days, which is a usual delay",
  ],
  [
    "a date in the past",
    (its) => its.accepted.offerAt("x", new Date(0)),
    "it is due at once: what was to be done at a time that has passed must not be lost",
  ],
  [
    "fractions of a millisecond",
    (its) => its.accepted.offer("x", 0.5),
    "they come from calculations; the deadline is rounded up",
  ],
  ["no payload", (its) => its.accepted.offer(undefined, 5000), "it comes back as null, as in JSON"],
  [
    "NaN in a payload",
    (its) => its.accepted.offer({ amount: NaN }, 5000),
    "MessagePack has a form for it",
  ],
  [
    "an unknown id",
    async (its) => expectFalse(await its.accepted.cancel(ID)),
    "false is the answer: nobody can know whether it was ever there",
  ],
  [
    "a key that was never offered",
    async (its) => expectFalse(await its.accepted.has("nothing:1")),
    "false is the answer",
  ],
  [
    "poll of the delayed queue with a timeout in mind",
    (its) => its.accepted.insertionOrder.poll(0),
    "in Redisson, too, it takes messages out before they are due; the docs warn of it",
  ],
  [
    "options left out in a second handle",
    (its) => its.line.getDelayedQueue(its.accepted.name),
    "they are those of the first handle",
  ],
  [
    "undefined for an option",
    (its) => its.line.getDelayedQueue("q", { codec: undefined, transfer: false } as never),
    "it counts as left out, as in most libraries",
  ],
  [
    "an async function for retry",
    (its) => its.line.getReliableQueue("r", { retry: (async () => 5) as never, transfer: false }),
    "only its result shows the mistake; the default pauses apply then, and an error event tells it",
  ],
  [
    "pausing twice",
    async (its) => {
      await its.accepted.pause();
      await its.accepted.pause();
      await its.accepted.resume();
    },
    "the queue is paused, as was asked for",
  ],
  [
    "a second close",
    async (its) => {
      await its.ended.close();
      await its.ended.close();
    },
    "a signal handler and a finally block may both close",
  ],
  [
    "a key that looks like a path",
    (its) => its.accepted.offer("x", 5000, { key: "../../etc/passwd" }),
    "a key is any text; it is part of no command and no file name",
  ],
];

function expectFalse(value: boolean): void {
  if (value) throw new Error("it was found");
}
