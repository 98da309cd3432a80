import type { QueueNumbers, QueueStats } from "./queue-stats.ts";

/** What a number counts or measures. Durations are in milliseconds, instants in epoch ms. */
export type Unit = "messages" | "schedules" | "consumers" | "processes" | "duration" | "instant";

/** A number of a queue, or of one of its partitions. */
export interface QueueGauge {
  /** In words, for people. */
  readonly label: string;
  readonly unit: Unit;
  readonly help: string;
  /** Undefined if there is no value, or Redis does not say. */
  readonly of: (numbers: QueueNumbers, serverTime: number) => number | undefined;
}

/**
 * The numbers of a queue that are shown to people and exported as metrics. Prometheus, OpenTelemetry, `delayline stats`
 * and the dashboard read this table, each with a spelling of its own. See `QueueNumbers` for what each number means.
 */
export const QUEUE_GAUGES = {
  delayed: {
    label: "delayed",
    unit: "messages",
    help: "Messages that wait for their deadline, or are due and not moved yet.",
    of: ({ delayed }) => delayed,
  },
  overdue: {
    label: "overdue",
    unit: "messages",
    help: "Messages and retries that are due and not moved yet.",
    of: ({ overdue }) => overdue,
  },
  overdueBy: {
    label: "overdue by",
    unit: "duration",
    help: "How long the earliest message or retry has been due without being moved; 0 if none is due.",
    of: ({ nextDeadline = Infinity }, serverTime) => Math.max(0, serverTime - nextDeadline),
  },
  ready: {
    label: "ready",
    unit: "messages",
    help: "Messages that can be taken.",
    of: ({ ready }) => ready,
  },
  inFlight: {
    label: "in flight",
    unit: "messages",
    help: "Messages of a reliable queue that consumers hold.",
    of: ({ inFlight }) => inFlight,
  },
  retries: {
    label: "retrying",
    unit: "messages",
    help: "Messages of a reliable queue that wait for their next attempt.",
    of: ({ retries }) => retries,
  },
  dead: {
    label: "dead",
    unit: "messages",
    help: "Dead letters.",
    of: ({ dead }) => dead,
  },
  dropped: {
    label: "dropped",
    unit: "messages",
    help: "Due messages that were dropped because of their onlyIf, deliverWithin or overlap, ever.",
    of: ({ dropped }) => dropped,
  },
  droppedLate: {
    label: "dropped late",
    unit: "messages",
    help: "Due messages that were dropped because their deliverWithin had passed, ever.",
    of: ({ droppedLate }) => droppedLate,
  },
  droppedOverlap: {
    label: "dropped overlap",
    unit: "messages",
    help: "Runs of schedules that were dropped because another run was ready or in flight, ever.",
    of: ({ droppedOverlap }) => droppedOverlap,
  },
  quarantined: {
    label: "quarantined",
    unit: "messages",
    help: "Unreadable messages.",
    of: ({ quarantined }) => quarantined,
  },
  remembered: {
    label: "remembered",
    unit: "messages",
    help: "Handled messages that Redis still remembers, with the option keepHandled.",
    of: ({ remembered }) => remembered,
  },
  schedules: {
    label: "schedules",
    unit: "schedules",
    help: "Schedules, also those that are paused or over.",
    of: ({ schedules }) => schedules,
  },
  unplanned: {
    label: "unplanned",
    unit: "schedules",
    help: "Schedules whose next messages should have been placed a minute ago, and were not.",
    of: ({ unplanned }) => unplanned,
  },
  nextDeadline: {
    label: "next due",
    unit: "instant",
    help: "The earliest deadline of a message or retry; absent if there is none.",
    of: ({ nextDeadline }) => nextDeadline,
  },
  oldestReadyAge: {
    label: "oldest ready",
    unit: "duration",
    help: "How long the oldest ready message of a reliable queue has been ready.",
    of: ({ oldestReadyAge }) => oldestReadyAge,
  },
  oldestInFlightAge: {
    label: "oldest in flight",
    unit: "duration",
    help: "How long the message in flight that was handed out first has been in flight.",
    of: ({ oldestInFlightAge }) => oldestInFlightAge,
  },
  consumers: {
    label: "consumers",
    unit: "consumers",
    help: "Consumers in the groups of a reliable queue.",
    of: ({ consumers }) => consumers,
  },
  listeners: {
    label: "listeners",
    unit: "processes",
    help: "Processes that are subscribed to the queue's wake-ups, because they move or take its messages.",
    of: ({ listeners }) => listeners,
  },
} as const satisfies Readonly<Record<string, QueueGauge>>;

export type GaugeName = keyof typeof QUEUE_GAUGES;

/** The one number of a queue that its partitions do not have. */
export const PAUSED = {
  label: "paused",
  help: "Whether the queue is paused (1), or not (0).",
  of: ({ isPaused }: QueueStats) => (isPaused ? 1 : 0),
} as const;
