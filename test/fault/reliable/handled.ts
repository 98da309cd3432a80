import type { Redis } from "ioredis";
import { repeated } from "../../helpers/ledger.ts";

/** What a handler did with one message at one moment. */
export interface Note {
  readonly what: "started" | "completed";
  readonly id: number;
  readonly attempt: number;
  /** Epoch milliseconds on the server's clock. */
  readonly at: number;
}

/** Where the workers of a queue write what they do: a LIST of notes, and a SET of completed messages. */
export function ledgerKeys(queue: string): { readonly log: string; readonly completed: string } {
  return { log: `ledger:{${queue}}:log`, completed: `ledger:{${queue}}:completed` };
}

/** Writes a note. Keys as in {@link ledgerKeys}; arguments: what, id, attempt. */
export const LEDGER_SCRIPT = `
local now = redis.call("TIME")
local at = string.format("%d.%06d", now[1], now[2])
redis.call("RPUSH", KEYS[1], ARGV[1] .. " " .. ARGV[2] .. " " .. ARGV[3] .. " " .. at)
if ARGV[1] == "completed" then redis.call("SADD", KEYS[2], ARGV[2]) end
`;

/** Reads the notes in order. */
export async function readNotes(redis: Redis, queue: string): Promise<Note[]> {
  const { log } = ledgerKeys(queue);
  const notes: Note[] = [];
  for (let from = 0; ; from += PAGE) {
    const lines = await redis.lrange(log, from, from + PAGE - 1);
    for (const line of lines) {
      const [what, id, attempt, seconds] = line.split(" ");
      notes.push({
        what: what as Note["what"],
        id: Number(id),
        attempt: Number(attempt),
        at: Number(seconds) * 1000,
      });
    }
    if (lines.length < PAGE) return notes;
  }
}

/** How many different messages have been completed. */
export async function completedCount(redis: Redis, queue: string): Promise<number> {
  return await redis.scard(ledgerKeys(queue).completed);
}

/** Compares the stored messages, with their deadlines by id, with the handled ones. */
export function settle(stored: ReadonlyMap<number, number>, notes: readonly Note[]) {
  const starts = notes.filter(({ what }) => what === "started");
  const completions = notes.filter(({ what }) => what === "completed");
  const completed = new Set(completions.map(({ id }) => id));
  const started = new Set(starts.map(({ id }) => id));
  // An offer whose reply was lost is sent again. If its first copy was ready by then, it is stored twice, and the reply
  // names the deadline of the second.
  const firsts = starts.filter(({ attempt }) => attempt === 1).map(({ id }) => id);
  const storedTwice = new Set(repeated(firsts));
  return {
    lost: [...stored.keys()].filter((id) => !completed.has(id)),
    early: starts.filter(
      ({ id, at }) => !storedTwice.has(id) && at < (stored.get(id) ?? -Infinity),
    ),
    counts: {
      stored: stored.size,
      started: started.size,
      startedAgain: starts.length - started.size,
      completed: completed.size,
      completedAgain: completions.length - completed.size,
    },
  };
}

const PAGE = 10_000;
