import { asInstant, clock } from "../fragments/clock.ts";
import { asDeadline, replied } from "../fragments/deadline.ts";
import { scheduleNames } from "../places/schedules.ts";
import { asBuffer, asFlag, asNumber, asRow, asRows, asText, orNothing } from "../reply.ts";
import { defineFragment } from "../fragment.ts";
import { defineScript } from "../script.ts";

/** A schedule, and its record; undefined if it has none. */
export interface DueSchedule {
  readonly name: string;
  readonly record: Buffer | undefined;
}

/**
 * Returns up to `limit` schedules that are to be planned by now, from position `offset` on, the earliest first; and when
 * the first of the others is to be planned (epoch ms; undefined if none is).
 */
export const schedulesDue = defineScript({
  name: "schedules-due",
  keys: ["schedules", "planning"],
  args: ["offset", "limit"],
  needs: [clock, replied],
  lua: /* lua */ `
local now = clock()
local latest = math.floor(now / 1000)
local names = redis.call("ZRANGEBYSCORE", planning, "-inf", latest, "LIMIT", offset, limit)
local head = redis.call("ZRANGEBYSCORE", planning, "(" .. latest, "(+inf", "WITHSCORES", "LIMIT", 0, 1)[2]
local rows = {}
if #names > 0 then
  for i, record in ipairs(redis.call("HMGET", schedules, unpack(names))) do
    rows[2 * i - 1], rows[2 * i] = names[i], record
  end
end
return { now, rows, head and replied(tonumber(head)) }
`,
  reply: (raw) =>
    asRow(raw, {
      serverTime: asInstant,
      due: (rows): DueSchedule[] => asRows(rows, { name: asText, record: orNothing(asBuffer) }),
      next: orNothing(asDeadline),
    }),
});

/** What became of a schedule's ticks that were placed, since it is in its partition. */
export interface DroppedRuns {
  /** How many were dropped since they were too late: no process moved them, or the queue was paused. */
  readonly droppedLate: number;
  /** How many were dropped since another run was ready or in flight. */
  readonly droppedOverlap: number;
}

/** `dropsOf(name)`: how many runs of a schedule the move has dropped, because they were late, and because of others. */
const drops = defineFragment({
  keys: ["dropped"],
  lua: /* lua */ `
local function dropsOf(name)
  local found = redis.pcall("HMGET", dropped, "deliverWithin\\0" .. name, "overlap\\0" .. name)
  return tonumber(found[1] or 0) or 0, tonumber(found[2] or 0) or 0
end
`,
});

/** Returns the record of a schedule, whether Redis knows when to plan it, and the server's time (epoch ms). */
export const readSchedule = defineScript({
  name: "read-schedule",
  keys: ["schedules", "planning"],
  args: ["name"],
  needs: [clock, drops],
  lua: /* lua */ `
local record = redis.call("HGET", schedules, name)
return { clock(), record, record and redis.call("ZSCORE", planning, name) and 1 or 0, dropsOf(name) }
`,
  reply: (raw) =>
    asRow(raw, {
      serverTime: asInstant,
      record: orNothing(asBuffer),
      isPlanned: asFlag,
      droppedLate: asNumber,
      droppedOverlap: asNumber,
    }),
});

/**
 * Makes every schedule one that is to be planned now, unless Redis knows when; returns how many are to be planned at some
 * time. For a queue whose `planning` was deleted or evicted: with the records everything else is still there.
 */
export const restorePlanning = defineScript({
  name: "restore-planning",
  keys: ["schedules", "planning"],
  args: [],
  needs: [clock, scheduleNames],
  lua: /* lua */ `
local now = math.floor(clock() / 1000)
for _, name in ipairs(scheduleNames()) do redis.call("ZADD", planning, "NX", now, name) end
return redis.call("ZCARD", planning)
`,
  reply: asNumber,
});

/**
 * Reads a page of the schedules, and of the revisions of sets, from a cursor on; and of each schedule whether Redis knows
 * when to plan it, and how many of its runs were dropped.
 */
export const schedulesPage = defineScript({
  name: "schedules-page",
  keys: ["schedules", "planning"],
  args: ["cursor", "count"],
  needs: [drops],
  lua: /* lua */ `
local page = redis.call("HSCAN", schedules, cursor, "COUNT", count)
local found, rows = page[2], {}
for i = 1, #found, 2 do
  local isPlanned = redis.call("ZSCORE", planning, found[i]) and 1 or 0
  for _, value in ipairs({ found[i], found[i + 1], isPlanned, dropsOf(found[i]) }) do rows[#rows + 1] = value end
end
return { page[1], rows }
`,
  reply: (raw) =>
    asRow(raw, {
      cursor: asText,
      rows: (rows) =>
        asRows(rows, {
          field: asBuffer,
          value: asBuffer,
          isPlanned: asFlag,
          droppedLate: asNumber,
          droppedOverlap: asNumber,
        }),
    }),
});
