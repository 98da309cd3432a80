import type { Command } from "./session/command.ts";

/** A subcommand, loaded on demand. */
interface Entry {
  readonly summary: string;
  readonly load: () => Promise<Command>;
}

/** All subcommands, in the order in which `delayline help` lists them. */
export const COMMANDS = {
  queues: {
    summary: "lists all queues",
    load: async () => (await import("./commands/queues.ts")).queues,
  },
  stats: {
    summary: "counts messages by state, and shows which queues are late",
    load: async () => (await import("./commands/stats.ts")).stats,
  },
  list: {
    summary: "lists the messages of a queue in one state",
    load: async () => (await import("./commands/list.ts")).list,
  },
  search: {
    summary: "finds delayed messages by a prefix of their keys",
    load: async () => (await import("./commands/search.ts")).search,
  },
  get: {
    summary: "shows where a message is, by its id or key",
    load: async () => (await import("./commands/get.ts")).get,
  },
  due: {
    summary: "counts messages by when they fall due",
    load: async () => (await import("./commands/due.ts")).due,
  },
  cancel: {
    summary: "cancels messages by id, key or key prefix",
    load: async () => (await import("./commands/cancel.ts")).cancel,
  },
  reschedule: {
    summary: "gives a message a new deadline",
    load: async () => (await import("./commands/reschedule.ts")).reschedule,
  },
  "deliver-now": {
    summary: "makes messages due now",
    load: async () => (await import("./commands/deliver-now.ts")).deliverNow,
  },
  pause: {
    summary: "pauses a queue: nothing becomes ready, nothing is delivered",
    load: async () => (await import("./commands/pause.ts")).pause,
  },
  resume: {
    summary: "resumes a paused queue",
    load: async () => (await import("./commands/resume.ts")).resume,
  },
  dead: {
    summary: "lists, redrives or removes dead letters",
    load: async () => (await import("./commands/dead.ts")).dead,
  },
  quarantine: {
    summary: "lists, requeues or removes unreadable messages",
    load: async () => (await import("./commands/quarantine.ts")).quarantine,
  },
  partitions: {
    summary: "lists the partitions of a queue",
    load: async () => (await import("./commands/partitions.ts")).partitions,
  },
  export: {
    summary: "writes a queue to a file, one message per line",
    load: async () => (await import("./commands/export.ts")).exportCommand,
  },
  import: {
    summary: "reads an export into a queue, each message once",
    load: async () => (await import("./commands/import.ts")).importCommand,
  },
  doctor: {
    summary: "finds what is wrong, and says how to repair it",
    load: async () => (await import("./commands/doctor.ts")).doctor,
  },
  dashboard: {
    summary: "serves a web page that shows the queues",
    load: async () => (await import("./commands/dashboard.ts")).dashboard,
  },
} as const satisfies Readonly<Record<string, Entry>>;

export type CommandName = keyof typeof COMMANDS;
