import type { Command } from "./command/command.ts";

/** A subcommand that is loaded when it is asked for. */
interface Entry {
  readonly summary: string;
  readonly load: () => Promise<Command>;
}

/** All subcommands, as `delayline help` lists them. */
export const COMMANDS = {
  queues: {
    summary: "the queues that there are",
    load: async () => (await import("./commands/queues.ts")).queues,
  },
  stats: {
    summary: "how many messages are where, and how late",
    load: async () => (await import("./commands/stats.ts")).stats,
  },
  list: {
    summary: "the messages of a queue, by deadline",
    load: async () => (await import("./commands/list.ts")).list,
  },
  search: {
    summary: "delayed messages by a prefix of their keys",
    load: async () => (await import("./commands/search.ts")).search,
  },
  get: {
    summary: "where one message is, by its id or key",
    load: async () => (await import("./commands/get.ts")).get,
  },
  due: {
    summary: "how much falls due when",
    load: async () => (await import("./commands/due.ts")).due,
  },
  cancel: {
    summary: "cancels messages, by id, key or prefix",
    load: async () => (await import("./commands/cancel.ts")).cancel,
  },
  reschedule: {
    summary: "gives a message another deadline",
    load: async () => (await import("./commands/reschedule.ts")).reschedule,
  },
  "deliver-now": {
    summary: "makes messages due now",
    load: async () => (await import("./commands/deliver-now.ts")).deliverNow,
  },
  pause: {
    summary: "nothing becomes ready and nothing is handed out",
    load: async () => (await import("./commands/pause.ts")).pause,
  },
  resume: {
    summary: "lets a paused queue go on",
    load: async () => (await import("./commands/resume.ts")).resume,
  },
  dead: {
    summary: "dead letters: list, redrive, remove",
    load: async () => (await import("./commands/dead.ts")).dead,
  },
  quarantine: {
    summary: "what nobody could read: list, requeue, remove",
    load: async () => (await import("./commands/quarantine.ts")).quarantine,
  },
  partitions: {
    summary: "the partitions of a queue",
    load: async () => (await import("./commands/partitions.ts")).partitions,
  },
  export: {
    summary: "writes a queue to a file, a message a line",
    load: async () => (await import("./commands/export.ts")).exportCommand,
  },
  import: {
    summary: "puts such a file into a queue, each message once",
    load: async () => (await import("./commands/import.ts")).importCommand,
  },
  doctor: {
    summary: "what is not as it should be, and what repairs it",
    load: async () => (await import("./commands/doctor.ts")).doctor,
  },
  dashboard: {
    summary: "a page that shows the queues",
    load: async () => (await import("./commands/dashboard.ts")).dashboard,
  },
} as const satisfies Readonly<Record<string, Entry>>;

export type CommandName = keyof typeof COMMANDS;
