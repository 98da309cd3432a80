import type { Command, CommandTable } from "./session/command.ts";

/** In one module, so that the package has one file for all of them. */
const commands = () => import("./commands/every-command.ts");

/** All subcommands, in the order in which `delayline help` lists them. */
export const COMMANDS = {
  queues: {
    summary: "lists all queues",
    load: async () => (await commands()).queues,
  },
  stats: {
    summary: "counts messages by state, and shows which queues are late",
    load: async () => (await commands()).stats,
  },
  top: {
    summary: "shows all queues live, on the whole terminal",
    load: async () => (await commands()).top,
  },
  list: {
    summary: "lists the messages of a queue in one state",
    load: async () => (await commands()).list,
  },
  search: {
    summary: "finds messages by a prefix of their keys",
    load: async () => (await commands()).search,
  },
  get: {
    summary: "shows where a message is, by its id or key",
    load: async () => (await commands()).get,
  },
  due: {
    summary: "counts messages by when they fall due",
    load: async () => (await commands()).due,
  },
  cancel: {
    summary: "cancels messages by id, key or key prefix",
    load: async () => (await commands()).cancel,
  },
  revoke: {
    summary: "stops messages wherever they are, also while they run",
    load: async () => (await commands()).revoke,
  },
  running: {
    summary: "lists the messages that consumers have, and in which process",
    load: async () => (await commands()).running,
  },
  reschedule: {
    summary: "gives a message a new deadline",
    load: async () => (await commands()).reschedule,
  },
  "deliver-now": {
    summary: "makes messages due now",
    load: async () => (await commands()).deliverNow,
  },
  schedules: {
    summary: "lists schedules, and runs, pauses, resumes or removes one",
    load: async () => (await commands()).schedules,
  },
  pause: {
    summary: "pauses a queue: nothing becomes ready, nothing is delivered",
    load: async () => (await commands()).pause,
  },
  resume: {
    summary: "resumes a paused queue",
    load: async () => (await commands()).resume,
  },
  move: {
    summary: "makes due messages ready, and takes none",
    load: async () => (await commands()).move,
  },
  flow: {
    summary: "shows, sets or ends the rate of a queue",
    load: async () => (await commands()).flow,
  },
  log: {
    summary: "shows what was done to a queue, and by which process",
    load: async () => (await commands()).log,
  },
  overdue: {
    summary: "counts what is overdue, and releases or drops it",
    load: async () => (await commands()).overdue,
  },
  restore: {
    summary: "pauses queues after Redis was restored from a backup",
    load: async () => (await commands()).restore,
  },
  dead: {
    summary: "lists, redrives or removes dead letters",
    load: async () => (await commands()).dead,
  },
  quarantine: {
    summary: "lists, requeues or removes unreadable messages",
    load: async () => (await commands()).quarantine,
  },
  partitions: {
    summary: "lists the partitions of a queue, or changes their number",
    load: async () => (await commands()).partitions,
  },
  export: {
    summary: "writes a queue to a file, one message per line",
    load: async () => (await commands()).exportCommand,
  },
  import: {
    summary: "reads an export into a queue, each message once",
    load: async () => (await commands()).importCommand,
  },
  doctor: {
    summary: "finds what is wrong, and says how to repair it",
    load: async () => (await commands()).doctor,
  },
  dashboard: {
    summary: "serves a web page that shows the queues",
    load: async () => (await commands()).dashboard,
  },
  completion: {
    summary: "prints a script that completes this command's words in a shell",
    load: async (): Promise<Command> => (await commands()).completion(COMMANDS),
  },
  demo: {
    summary: "shows a queue at work, with two workers to kill",
    load: async () => (await commands()).demo,
  },
} as const satisfies CommandTable;

export type CommandName = keyof typeof COMMANDS;
