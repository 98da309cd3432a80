/** How bad it is. An error stops a queue or loses messages, now or at the next restart; a notice is for information. */
export type Level = "error" | "warning" | "notice";

/** The names of the checks: those of servers first, then those of queues. */
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

/** Something that is not as it should be. It holds no payload and no password. */
export interface Finding {
  readonly level: Level;
  /** What was looked for; `docs/operations.md` tells when each is found. */
  readonly check: CheckName;
  /** The queue that it is about; undefined: a server, or all queues. */
  readonly queue?: string;
  /** What was found, with the numbers. */
  readonly what: string;
  /** Why that matters. */
  readonly why: string;
  /** The command that repairs it, or what to do. */
  readonly repair: string;
}
