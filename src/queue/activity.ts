import { randomBytes } from "node:crypto";
import { noteActivity, unpackActivity } from "../lua/queue/activity.ts";
import type { Call } from "./call.ts";
import { processName } from "./process-name.ts";
import type { Queue } from "./queue.ts";

/** What can be done to a queue, as its log holds it. */
export const DEEDS = [
  "paused",
  "resumed",
  "cleared",
  "cancelled",
  "revoked",
  "redriven",
  "letters removed",
  "requeued",
  "quarantine cleared",
  "declared",
  "schedule paused",
  "schedule resumed",
  "schedule removed",
  "partitions set",
  "made plain",
  "flow set",
  "flow cleared",
  "lane pinned",
  "lane unpinned",
  "restored",
] as const;

/** Something that was done to a queue. */
export interface Deed {
  readonly what: (typeof DEEDS)[number];
  /** How many messages or schedules it concerned. */
  readonly count?: number | undefined;
  /** Which ones, or why; cut to 200 characters. */
  readonly detail?: string | undefined;
}

/** What a process is to note. */
interface Note extends Deed {
  /** A text shared by all processes that note the same: it is noted once, without naming a process. */
  readonly shared?: string | undefined;
}

/** An entry of a queue's log. */
export interface Activity extends Deed {
  /** When it was done (epoch ms on the server's clock). */
  readonly at: number;
  /** The process that did it, `host/pid`; undefined for what many notice. */
  readonly by: string | undefined;
}

/**
 * Notes in the log of a queue what this process has just done to it; nothing, if that concerned no message. Never rejects: the
 * log is for people, and what was done is done, even if Redis refuses the note.
 */
export async function noteDeed(queue: Queue, { what, count, detail, shared }: Note): Promise<void> {
  if (count === 0) return;
  const by = shared === undefined ? processName() : null;
  const note = [what, by, count ?? null, detail?.slice(0, LONGEST) ?? null];
  const own = shared ?? randomBytes(6).toString("hex");
  const entry = `${own} ${JSON.stringify(note)}`;
  await queue.read("note what was done to", noteActivity, { entry }).catch(() => {});
}

/** Reads the log of a queue, the newest entry first: at most 200. */
export async function readActivity(queue: Queue, call?: Call): Promise<Activity[]> {
  const entries = await queue.call(
    "look into",
    (redis, { activity }) => redis.lrangeBuffer(activity, 0, -1),
    call,
  );
  return entries.flatMap((raw) => parse(raw) ?? []);
}

/** Undefined for an entry in a foreign format. */
function parse(raw: Buffer): Activity | undefined {
  const { at, entry } = unpackActivity(raw) ?? {};
  if (at === undefined || entry === undefined) return undefined;
  try {
    const note: unknown = JSON.parse(entry.slice(entry.indexOf(" ") + 1));
    const [what, by, count, detail] = note as [Deed["what"], ...unknown[]];
    if (!DEEDS.includes(what)) return undefined;
    return {
      at,
      by: typeof by === "string" ? by : undefined,
      what,
      ...(typeof count === "number" && { count }),
      ...(typeof detail === "string" && { detail }),
    };
  } catch {
    return undefined;
  }
}

/** The most characters of a detail. */
const LONGEST = 200;
