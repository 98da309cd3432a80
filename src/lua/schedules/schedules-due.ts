import { asInstant, clock } from "../fragments/clock.ts";
import { asDeadline, replied } from "../fragments/deadline.ts";
import { asBuffer, asRow, asRows, asText, orNothing } from "../reply.ts";
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

/** Returns the record of a schedule, and the server's time (epoch ms). */
export const readSchedule = defineScript({
  name: "read-schedule",
  keys: ["schedules"],
  args: ["name"],
  needs: [clock],
  lua: /* lua */ `
return { clock(), redis.call("HGET", schedules, name) }
`,
  reply: (raw) => asRow(raw, { serverTime: asInstant, record: orNothing(asBuffer) }),
});
