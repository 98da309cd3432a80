import type { QueueNumbers } from "./numbers.ts";

/** What people can do with the messages in a place: with `revoke`, with those of a reliable queue. */
export type Verb =
  "cancel" | "promote" | "reschedule" | "revoke" | "redrive" | "requeue" | "remove";

export interface PlaceRow {
  readonly label: string;
  /** What it means for a message to be there. */
  readonly meaning: string;
  /** The keys that hold its messages, as `queue/keys.ts` names them. */
  readonly keys: readonly string[];
  /** How many messages are there. */
  readonly number: keyof QueueNumbers;
  /** In which order they are listed, where that says something. */
  readonly order?: string;
  readonly verbs: readonly Verb[];
}

/**
 * The places of a message, by the name of the state that it is in there. A message is in exactly one place; in a reliable
 * queue with several groups, in one for each group once it is ready.
 *
 * The command line, the dashboard, the metrics and the documentation have their places from this table.
 */
export const PLACES = {
  delayed: {
    label: "Delayed",
    meaning: "Waiting for its deadline, or for its turn.",
    keys: ["timeouts", "order", "room", "turns"],
    number: "delayed",
    order: "by deadline",
    verbs: ["cancel", "promote", "reschedule", "revoke"],
  },
  retrying: {
    label: "Retrying",
    meaning: "An attempt failed. Waiting for the next one.",
    keys: ["retries", "retrying"],
    number: "retries",
    order: "by next attempt",
    verbs: ["cancel", "promote", "reschedule", "revoke"],
  },
  ready: {
    label: "Ready",
    meaning: "Due, and not taken yet.",
    keys: ["ready", "stream"],
    number: "ready",
    order: "the longest ready first",
    verbs: ["revoke"],
  },
  "in flight": {
    label: "In flight",
    meaning: "A consumer is handling it.",
    keys: ["stream"],
    number: "inFlight",
    order: "the longest in flight first",
    verbs: ["revoke"],
  },
  dead: {
    label: "Dead",
    meaning: "Not delivered again unless someone redrives it.",
    keys: ["dead"],
    number: "dead",
    order: "the oldest first",
    verbs: ["redrive", "remove"],
  },
  quarantined: {
    label: "Quarantined",
    meaning: "No consumer could read it.",
    keys: ["quarantine", "unreadable"],
    number: "quarantined",
    verbs: ["requeue", "remove"],
  },
} as const satisfies Readonly<Record<string, PlaceRow>>;

export type Place = keyof typeof PLACES;

/** The places in which a message can be found, cancelled and rescheduled by its id or business key. */
export type DuePlace = {
  [P in Place]: "cancel" extends (typeof PLACES)[P]["verbs"][number] ? P : never;
}[Place];
