/**
 * How bad a finding is. An error stops a queue or loses messages, now or at the next restart; a notice only informs.
 */
export type Level = "error" | "warning" | "notice";

/** The names of the checks: first those of servers, then those of queues. */
export const CHECKS = [
  "reachable",
  "database",
  "version",
  "scripts",
  "persistence",
  "eviction",
  "memory",
  "timeout",
  "tcp-keepalive",
  "maxclients",
  "output-buffer",
  "replication",
  "clock",
  "latency",
  "cluster",
  "access",
  "config",
  "clients",
  "queues",
  "no-queue",
  "refused",
  "key-type",
  "paused",
  "overdue",
  "no-transfer",
  "deaf",
  "no-consumer",
  "backlog",
  "orphan",
  "dead-letters",
  "quarantine",
  "insertion-order",
  "index",
  "early",
  "partitions",
] as const;

export type CheckName = (typeof CHECKS)[number];

/** Something that is wrong. It holds no payload and no password. */
export interface Finding {
  readonly level: Level;
  /** The check that found it. `docs/operations.md` says what each one looks for. */
  readonly check: CheckName;
  /** The queue that it is about; undefined if it is about a server, or about all queues. */
  readonly queue?: string;
  /** The problem, with numbers. */
  readonly what: string;
  /** Why the problem matters. */
  readonly why: string;
  /** How to solve the problem. Commands are in backticks. */
  readonly repair: string;
}
