/** Where each option of the library belongs. */
export const OWNERS: Readonly<Record<string, string>> = {
  redis: "new Delayline",
  callTimeout: "new Delayline",
  unreachableTimeout: "new Delayline",
  heartbeat: "new Delayline",
  onRestore: "new Delayline",
  codec: "new Delayline and of its queues",
  transfer: "new Delayline and of its queues",
  interop: "new Delayline and of its queues",
  maxPayloadBytes: "new Delayline and of its queues",
  anyTime: "new Delayline and of its queues",
  partitions: "getDelayedQueue, getBlockingQueue and getReliableQueue",
  group: "getReliableQueue",
  start: "getReliableQueue",
  leaseTimeout: "getReliableQueue",
  keepHandled: "getReliableQueue",
  maxAttempts: "getReliableQueue",
  retry: "getReliableQueue",
  exclusive: "getReliableQueue",
  strict: "getReliableQueue",
  initial: "retry",
  factor: "retry",
  jitter: "retry",
  key: "an offer",
  onDuplicate: "an offer",
  maxWait: "an offer",
  maxCollected: "an offer",
  once: "an offer to a reliable queue",
  onlyIf: "an offer",
  deliverWithin: "an offer",
  partitionKey: "an offer",
  headers: "an offer to a reliable queue",
  concurrency: "subscribe",
  onError: "subscribe",
  orderBy: "subscribe of a reliable queue",
  timeLimit: "subscribe of a reliable queue",
  grace: "subscribe of a reliable queue",
  unknown: "route",
  limit: "takeMany and subscribeBatch",
  timeout: "takeMany",
  handlerTimeout: "close",
  reason: "nack",
  dryRun: "cancelWhere",
  timeZone: "schedules and local times",
};

/** What a name means that users bring from another library. */
export interface Brought {
  /** The names, as {@link squeezed} writes them. */
  readonly names: readonly string[];
  /** The option with that meaning. */
  readonly option?: string;
  /** What to write instead, if it is more than the option's name. */
  readonly write?: (given: string) => string;
  /** What to do where the option does not help. */
  readonly wayOut?: string;
}

const RECURRING = "messages that recur are offered by queue.schedules";

/**
 * Names of other libraries: BullMQ, Bee-Queue, Agenda, pg-boss, Celery, Sidekiq, SQS, RabbitMQ, Kafka, NATS, ioredis.
 * If a name has several meanings, the first one whose option is legal applies.
 */
export const BROUGHT: readonly Brought[] = [
  {
    names:
      words(`id jobId jobKey messageId taskId uniqueKey unique uniqueFor singletonKey deduplication
      deduplicationId deduplicationKey messageDeduplicationId dedupe dedupeKey dedup idempotencyKey`),
    option: "key",
  },
  {
    names: words("debounce throttle singletonSeconds debounceTime"),
    option: "key",
    write: () => 'key with onDuplicate: "replace"',
  },
  {
    names: words(
      "uniqueOpts uniquePeriod uniqueStates byState byPeriod lockTtl uniqueTtl singleton exactlyOnce",
    ),
    option: "once",
    write: () => "key with once",
  },
  { names: words("replace overwrite upsert onConflict ifExists"), option: "onDuplicate" },
  {
    names:
      words(`attempts maxDeliver maxDeliveryCount retries maxRetries retryLimit retryCount tries maxTries maxReceiveCount
      maxRetry deliveryLimit maxStalledCount`),
    option: "maxAttempts",
  },
  { names: words("delay retryDelay minTimeout initialDelay base"), option: "initial" },
  { names: words("multiplier exponent"), option: "factor" },
  {
    names: words("maxDelay maxTimeout cap"),
    option: "max",
    wayOut: "use max, an option of retry",
  },
  { names: words("randomize randomness"), option: "jitter" },
  { names: words("type strategy"), wayOut: "the pauses grow by factor; with 1 they are equal" },
  {
    names: words("backoff backoffStrategy retryBackoff retryDelay retryDelays retryStrategy"),
    option: "retry",
  },
  {
    names:
      words(`lockDuration lockRenewTime stalledInterval visibility visibilityTimeout visibilityTimeoutSeconds ackWait
      ackTimeout expireInSeconds leaseTime leaseDuration lockLifetime jobTimeout`),
    option: "leaseTimeout",
  },
  {
    names:
      words(`timeout jobTimeout handlerTimeout processTimeout taskTimeout taskTimeLimit softTimeLimit maxDuration maxRuntime
      maxRunTime maxExecutionTime executionTimeout runTimeout expireInSeconds`),
    option: "timeLimit",
  },
  { names: words("gracePeriod stuckTimeout stopTimeout softLimitGrace"), option: "grace" },
  {
    names: words("delay startAfter delaySeconds countdown delayMs wait"),
    option: "delay",
    wayOut:
      "a delay is the second argument of offer and reschedule, and an option of nack and redrive",
  },
  {
    names: words(
      "at date runAt eta scheduledFor scheduledAt scheduleAt deliverAt processAt startAt",
    ),
    option: "at",
    wayOut: "for an instant use offerAt or rescheduleAt",
  },
  {
    names: words("removeOnComplete removeOnSuccess keepCompleted"),
    wayOut: "leave it out: an acknowledged message is gone",
  },
  {
    names: words("removeOnFail removeOnFailure keepFailed keepJobs retentionDays"),
    wayOut: "leave it out: dead letters stay until deadLetters.remove or clear",
  },
  {
    names: words(
      "url uri connection redisUrl redisOptions createClient client addresses servers nodes",
    ),
    option: "redis",
  },
  {
    names:
      words(`host port path username password db database tls family sentinels keyPrefix lazyConnect
      maxRetriesPerRequest enableReadyCheck enableOfflineQueue connectTimeout commandTimeout retryStrategy
      reconnectOnError`),
    option: "redis",
    write: (given) => `redis: { ${given} }`,
  },
  {
    names: words("prefix namespace"),
    option: "redis",
    write: () => "redis: { keyPrefix }",
  },
  {
    names:
      words(`prefetch prefetchCount workers teamSize parallelism parallel maxConcurrency poolSize
      maxInFlight`),
    option: "concurrency",
  },
  {
    names: words("batchSize batch max maxMessages maxNumberOfMessages count size"),
    option: "limit",
  },
  {
    names:
      words(`maxWait maxBatchWait batchWait batchTimeout batchInterval linger lingerMs flushInterval bufferTime
      maximumBatchingWindowInSeconds`),
    option: "wait",
    wayOut: "use wait, an option of takeMany and subscribeBatch",
  },
  { names: words("waitTimeSeconds waitTime block blockMs"), option: "timeout" },
  {
    names: words("gracePeriod gracefulShutdownTimeout shutdownTimeout timeout"),
    option: "handlerTimeout",
    wayOut: "use close({ handlerTimeout })",
  },
  {
    names: words("autoAck noAck autoCommit autoDelete"),
    wayOut: "leave it out: subscribe acknowledges when the handler returns, take never does",
  },
  {
    names: words("autorun autostart"),
    wayOut: "leave it out: subscribe begins at once",
  },
  {
    names: words("lifo"),
    wayOut:
      "messages become ready in the order of their deadlines; in a queue whose flow has lanes, the higher priority is first",
  },
  { names: words("repeatEvery repeatInterval interval"), option: "every", wayOut: RECURRING },
  {
    names: words("pattern cronExpression cronPattern cronTime crontab"),
    option: "cron",
    wayOut: RECURRING,
  },
  { names: words("repeat schedule recurring every cron"), wayOut: RECURRING },
  {
    names: words("tz zone timeZoneId"),
    option: "timeZone",
  },
  { names: words("start startDate startTime begin since"), option: "startAt", wayOut: RECURRING },
  { names: words("start startDate startTime begin since"), option: "from" },
  { names: words("end endDate endTime until stopAt"), option: "endAt", wayOut: RECURRING },
  { names: words("end endDate endTime until stopAt"), option: "to" },
  { names: words("offset"), option: "phase", wayOut: RECURRING },
  { names: words("maxRuns maxRepeats"), option: "limit", wayOut: RECURRING },
  { names: words("skipDays exclude exclusions holidays"), option: "except", wayOut: RECURRING },
  { names: words("noOverlap preventOverrun protect"), option: "overlap", wayOut: RECURRING },
  {
    names: words("limiter rateLimit rateLimiter"),
    option: "concurrency",
    wayOut: "there is no rate limit: use concurrency, an option of subscribe",
  },
  {
    names: words("ttl expiration expires expiresIn expireIn expireAfter maxAge timeToLive"),
    wayOut:
      "messages do not expire; with deliverWithin, an option of an offer, one that comes too late is dropped",
  },
  { names: words("consumerGroup groupId groupName queueGroup durable"), option: "group" },
  {
    names: words(
      "groupId messageGroupId groupKey orderingKey shardKey routingKey hashKey partition",
    ),
    option: "partitionKey",
  },
  { names: words("fromBeginning startFrom autoOffsetReset deliverPolicy"), option: "start" },
  { names: words("fifo singleActiveConsumer"), option: "exclusive" },
  {
    names: words("deadLetter deadLetterQueue deadLetterExchange dlq redrivePolicy"),
    wayOut: "leave it out: a reliable queue keeps its dead letters itself, in deadLetters",
  },
  { names: words("serializer serialize encoder encoding contentType"), option: "codec" },
  {
    names: words("maxSize maxBytes maxPayload maxPayloadSize maxMessageSize sizeLimit"),
    option: "maxPayloadBytes",
  },
  { names: words("abortSignal abort abortController cancellationToken"), option: "signal" },
  { names: words("onFailed onFailure errorHandler"), option: "onError" },
  { names: words("shards partitionCount numPartitions numberOfPartitions"), option: "partitions" },
  { names: words("metadata meta attributes messageAttributes properties"), option: "headers" },
  { names: words("error err message cause"), option: "reason" },
  {
    names: words("data body content"),
    option: "payload",
    wayOut: "the payload is the first argument of offer",
  },
  {
    names:
      words(`terminate kill cancelJob removeJob jobCancel cancelProcessing cancelRunning abortRunning removeRunning
      stopRunning`),
    wayOut:
      "revoke of a reliable queue stops a message wherever it is, and aborts the signal of its handler",
  },
  {
    names: words("discard noRetry unrecoverable"),
    wayOut:
      "reject of a delivery makes it a dead letter at once; revoke of a reliable queue stops a message wherever it is",
  },
  {
    names: words("obliterate drain purge"),
    wayOut: "clear of a queue removes all its messages",
  },
  {
    names: words("onCancel onCancelled onCanceled onAbort onAborted onRevoked"),
    wayOut: "the signal of a delivery is aborted when its message is revoked",
  },
  { names: words("force"), option: "handlerTimeout", wayOut: "leave it out" },
  {
    names: words("logger log debug"),
    wayOut: "leave it out: the client emits the events error and recovered",
  },
  {
    names: words("startsWith match pattern like"),
    option: "prefix",
    wayOut: "use prefix, a condition of find and cancelWhere",
  },
];

/** A name in one spelling: `lease_timeout`, `--lease-timeout` and `leaseTimeout` are one. */
export function squeezed(name: string): string {
  return name.replaceAll(/[-_\s]/g, "").toLowerCase();
}

function words(text: string): string[] {
  return text.trim().split(/\s+/).map(squeezed);
}
