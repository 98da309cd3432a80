/** The numbers of a queue, or of one of its partitions. */
export interface QueueNumbers {
  /** Messages that wait for their deadline, or are due but not moved yet. */
  readonly delayed: number;
  /** Messages and retries that are due but not moved yet, although they may be. */
  readonly overdue: number;
  /** Messages and retries that are due and wait for their turn, since the queue has a rate. */
  readonly waiting: number;
  /**
   * Messages that can be taken: in the LIST, or in the stream and not in flight. With several groups, each group's
   * messages count.
   *
   * With several groups the number is approximate. A retry that is ready for one group counts for every group. Where
   * Redis does not report a group's lag (before 7.0, and while entries that it has not read yet are deleted), a group
   * with 100 or more unread entries also counts messages that it has finished and other groups have not.
   */
  readonly ready: number;
  /** Messages of a reliable queue that consumers of any group hold. */
  readonly inFlight: number;
  /** Messages of a reliable queue that wait for their next attempt. */
  readonly retries: number;
  /** Dead letters of a reliable queue. */
  readonly dead: number;
  /**
   * Due messages that were dropped because of their `onlyIf` or `deliverWithin`, or because another run of their schedule
   * was ready or in flight, since the queue's first one. It grows until the queue is deleted.
   */
  readonly dropped: number;
  /** Those of `dropped` that were too late: their `deliverWithin` had passed before any process moved them. */
  readonly droppedLate: number;
  /** Those of `dropped` that were runs of a schedule with `overlap: "skip"`, while another one was ready or in flight. */
  readonly droppedOverlap: number;
  /** Payloads and messages in the quarantine. */
  readonly quarantined: number;
  /**
   * Handled messages that Redis still remembers, once for each group that has handled them: with the option `keepHandled`.
   * At most some 100,000 per queue or partition. 0 without the option.
   */
  readonly remembered: number;
  /** Schedules, also those that are paused or over. */
  readonly schedules: number;
  /**
   * Schedules whose next messages should have been placed a minute ago, and were not: no process can plan them, or Redis has
   * lost when to.
   */
  readonly unplanned: number;
  /** The earliest deadline of a message or retry (epoch ms), which may be past; undefined if there is none. */
  readonly nextDeadline: number | undefined;
  /**
   * For how many milliseconds the oldest ready message has been ready. Undefined if none is ready, and for a plain
   * queue, whose ready LIST holds no times.
   */
  readonly oldestReadyAge: number | undefined;
  /**
   * For how many milliseconds the message that was handed out longest ago has been in flight: how long its handler has
   * run. Undefined if none is in flight, or each waits for the rest of its pause in strict order.
   */
  readonly oldestInFlightAge: number | undefined;
  /**
   * Consumers in the groups of a reliable queue, including dead ones until they are removed. Undefined for a plain
   * queue: Redis does not reveal who waits for a LIST.
   *
   * For a partitioned queue, the highest number of any partition, since a process may be a consumer of each. If the
   * queue is consumed exclusively, each partition has one, however many processes there are; see `perPartition`.
   */
  readonly consumers: number | undefined;
  /**
   * Processes that are subscribed to the queue's wake-ups: those that move its messages, and those that only take,
   * which hear of a pause this way. Undefined on a Cluster, where no single node knows all of them.
   */
  readonly listeners: number | undefined;
  /**
   * How many messages have become ready in a reliable queue since its stream was created; each retry counts again. It
   * grows until the stream is dropped: the difference between two calls is the throughput.
   *
   * Undefined for a plain queue; before Redis 7.0; while there are messages that no group has begun to read;
   * occasionally with several groups; and for a partitioned queue while it is undefined for any reliable partition.
   */
  readonly readied: number | undefined;
  /**
   * How many of the messages in `readied` have left the stream: acknowledged by every group, dead, or waiting for a
   * retry. Undefined when `readied` is.
   */
  readonly finished: number | undefined;
}

/** What a number counts or measures. Durations are in milliseconds, instants in epoch ms. */
export type Unit = "messages" | "schedules" | "consumers" | "processes" | "duration" | "instant";

/**
 * What the number of a whole queue is, given those of its partitions. `sum`: all of them have it, and it is never
 * undefined. `least` and `most`: that of those that have it. `sum of streams`: the sum of those with a stream; undefined
 * if one of these lacks it, since without that stream it would fall, and later seem to jump.
 */
export type Merge = "sum" | "least" | "most" | "sum of streams";

/** What people are told of a number. */
interface Told {
  /** In words, for people. */
  readonly label: string;
  readonly help: string;
  /** Its name in OpenTelemetry, if it is a metric of its own there. */
  readonly metric?: string;
}

/** A number that Redis counts. It is shown to people only with a label. */
interface Counted extends Partial<Told> {
  readonly unit: Unit;
  readonly merge: Merge;
}

/** A number that is made of others; `now` is the server's time (epoch ms). */
interface Derived extends Told {
  readonly unit: Unit;
  readonly of: (numbers: QueueNumbers, now: number) => number;
}

/**
 * The numbers of a queue, in the order in which Redis replies them. The script that counts them, `stats()`, the metrics,
 * the command line and the dashboard are made from this table, each with a spelling of its own.
 */
export const NUMBERS = {
  delayed: {
    label: "delayed",
    unit: "messages",
    merge: "sum",
    help: "Messages that wait for their deadline, or are due and not moved yet.",
  },
  overdue: {
    label: "overdue",
    unit: "messages",
    merge: "sum",
    metric: "overdue",
    help: "Messages and retries that are due and not moved yet, although they may be.",
  },
  overdueBy: {
    label: "overdue by",
    unit: "duration",
    metric: "overdue_age",
    help: "How long the earliest message or retry has been due without being moved; 0 if none is due.",
    of: ({ nextDeadline = Infinity, overdue, waiting }, now) =>
      overdue === 0 && waiting > 0 ? 0 : Math.max(0, now - nextDeadline),
  },
  waiting: {
    label: "waiting",
    unit: "messages",
    merge: "sum",
    metric: "waiting",
    help: "Messages and retries that are due and wait for their turn, since the queue has a flow.",
  },
  ready: {
    label: "ready",
    unit: "messages",
    merge: "sum",
    help: "Messages that can be taken.",
  },
  inFlight: {
    label: "in flight",
    unit: "messages",
    merge: "sum",
    help: "Messages of a reliable queue that consumers hold.",
  },
  retries: {
    label: "retrying",
    unit: "messages",
    merge: "sum",
    help: "Messages of a reliable queue that wait for their next attempt.",
  },
  dead: {
    label: "dead",
    unit: "messages",
    merge: "sum",
    help: "Dead letters.",
  },
  dropped: {
    label: "dropped",
    unit: "messages",
    merge: "sum",
    help: "Due messages that were dropped because of their onlyIf, deliverWithin or overlap, ever.",
  },
  droppedLate: {
    label: "dropped late",
    unit: "messages",
    merge: "sum",
    help: "Due messages that were dropped because their deliverWithin had passed, ever.",
  },
  droppedOverlap: {
    label: "dropped overlap",
    unit: "messages",
    merge: "sum",
    help: "Runs of schedules that were dropped because another run was ready or in flight, ever.",
  },
  quarantined: {
    label: "quarantined",
    unit: "messages",
    merge: "sum",
    help: "Unreadable messages.",
  },
  remembered: {
    label: "remembered",
    unit: "messages",
    merge: "sum",
    help: "Handled messages that Redis still remembers, with the option keepHandled.",
  },
  schedules: {
    label: "schedules",
    unit: "schedules",
    merge: "sum",
    help: "Schedules, also those that are paused or over.",
  },
  unplanned: {
    label: "unplanned",
    unit: "schedules",
    merge: "sum",
    metric: "unplanned_schedules",
    help: "Schedules whose next messages should have been placed a minute ago, and were not.",
  },
  nextDeadline: {
    label: "next due",
    unit: "instant",
    merge: "least",
    help: "The earliest deadline of a message or retry; absent if there is none.",
  },
  oldestReadyAge: {
    label: "oldest ready",
    unit: "duration",
    merge: "most",
    metric: "ready_age",
    help: "How long the oldest ready message of a reliable queue has been ready.",
  },
  oldestInFlightAge: {
    label: "oldest in flight",
    unit: "duration",
    merge: "most",
    metric: "in_flight_age",
    help: "How long the message in flight that was handed out first has been in flight.",
  },
  consumers: {
    label: "consumers",
    unit: "consumers",
    // A process may be a consumer of several partitions.
    merge: "most",
    metric: "consumers",
    help: "Consumers in the groups of a reliable queue.",
  },
  listeners: {
    label: "listeners",
    unit: "processes",
    merge: "least",
    help: "Processes that are subscribed to the queue's wake-ups, because they move or take its messages.",
  },
  readied: { unit: "messages", merge: "sum of streams" },
  finished: { unit: "messages", merge: "sum of streams" },
} as const satisfies Readonly<Record<keyof QueueNumbers, Counted>> & {
  readonly overdueBy: Derived;
};

export type NumberName = keyof typeof NUMBERS;

/** The numbers that Redis counts, in its order. */
export const COUNTED = (Object.keys(NUMBERS) as NumberName[]).filter(
  (name): name is keyof QueueNumbers => "merge" in NUMBERS[name],
);

/** A number that people see. */
export interface ShownNumber extends Told {
  readonly name: NumberName;
  readonly unit: Unit;
}

/** The numbers that people see, in their order. */
export const SHOWN: readonly ShownNumber[] = Object.entries(NUMBERS).flatMap(([name, row]) =>
  "label" in row ? [{ ...row, name: name as NumberName }] : [],
);

/** A number at the instant `now` on the server's clock (epoch ms); undefined if there is none, or Redis does not say. */
export function valueOf(name: NumberName, numbers: QueueNumbers, now: number): number | undefined {
  return name === "overdueBy" ? NUMBERS.overdueBy.of(numbers, now) : numbers[name];
}

/** The numbers of a queue in which there is nothing, and of which Redis says no more. */
export const NO_NUMBERS = Object.fromEntries(
  COUNTED.map((name) => [name, NUMBERS[name].merge === "sum" ? 0 : undefined]),
) as unknown as QueueNumbers;

/** The one number of a queue that its partitions do not have. */
export const PAUSED = {
  label: "paused",
  help: "Whether the queue is paused (1), or not (0).",
  of: ({ isPaused }: { readonly isPaused: boolean }) => (isPaused ? 1 : 0),
} as const;
