import { FACT, REFUSAL } from "../guarded.ts";
import { deadlineOf, packAddress } from "../fragments/address.ts";
import { asInstant, clock } from "../fragments/clock.ts";
import { defineFragment } from "../fragment.ts";
import { forget } from "../fragments/forget.ts";
import { dropDelayed, keysOf, locate, putNew, takeBack } from "../places/delayed.ts";
import { unpackMember } from "../fragments/member.ts";
import { writes } from "../fragments/writes.ts";
import { ownLanes } from "../places/own-lanes.ts";
import { asBuffer, asFlag, asNumber, asRow, asText, orNothing } from "../reply.ts";
import { defineScript } from "../script.ts";
import { may } from "../fragments/may.ts";
import { wakeUp } from "../fragments/wake-up.ts";

/**
 * `mayBeElsewhere(isOrdinary)`: with `isOrdinary` 1, on a queue that was given partitions, the refusal that a guarded
 * script returns; else nil.
 *
 * A schedule of such a queue may be in a partition by now. Other scripts of an ordinary queue need no such question, but
 * a schedule that is declared twice would run twice.
 */
const mayBeElsewhere = defineFragment({
  keys: ["partitions"],
  lua: /* lua */ `
local function mayBeElsewhere(isOrdinary)
  local fact = isOrdinary == "1" and redis.pcall("GET", partitions)
  if type(fact) ~= "string" or not fact:match("${FACT}") then return nil end
  return redis.error_reply("${REFUSAL} " .. fact)
end
`,
});

/** What came of it. */
export type PlanOutcome = (typeof OUTCOMES)[number];

const OUTCOMES = ["done", "stale", "due", "outdated", "more"] as const;

export interface PlanReply {
  /**
   * - `done`: also by an earlier copy of the call.
   * - `stale`: the schedule has another record by now, which is `held`.
   * - `due`: a message that was to be withdrawn has fallen due since `asOf`.
   * - `outdated`: a later revision of the set was declared.
   * - `more`: so many runs wait for each other that they are withdrawn in several steps; nothing else was done.
   */
  readonly outcome: PlanOutcome;
  readonly held: Buffer | undefined;
  /** The server's time (epoch ms), to the microsecond. */
  readonly serverTime: number;
}

/** How many runs that wait for each other one step withdraws. */
const AT_ONCE = 500;

/**
 * Changes a schedule: replaces its record by another one, or removes it (an empty `record`), and puts and withdraws
 * messages in the same step. So each tick is placed once, whoever plans, and however often a planner dies.
 *
 * Nothing is done unless the record has the revision `expected` (empty: there is none); nor if a message to withdraw has
 * fallen due since `asOf` (epoch ms), the instant by which the caller has decided: it may be ready; nor if a later revision
 * than `setRevision` of `set` (may be empty) was declared. A copy of the call finds its own record.
 *
 * With a record that is new (`expected` is empty), messages that have the keys of those to put are withdrawn: the record
 * was lost and is declared again, and each tick still comes once.
 *
 * A row is a message to put, by `member`, `deadline` and `key`; or one to withdraw, by `address`. `planAt` is when to
 * plan next. With `isWaking` (1 or 0) it wakes all tasks up.
 *
 * `ownLane`: the lane that the schedule has for itself; `formerLane`: that which it had; `leftLane`: that in which its runs no
 * longer wait, but are withdrawn. All three may be empty; see `own-lanes.ts`.
 *
 * `isOrdinary`: see the fragment `mayBeElsewhere`.
 *
 * No rollback: it wakes them first; and tries the removal that may have to take the messages back. What makes a tick count, the record, comes last, but for what must not be refused any
 * more: the removals, and the index.
 */
export const planSchedule = defineScript({
  name: "plan-schedule",
  keys: [
    "timeouts",
    "businessKeys",
    "schedules",
    "planning",
    "running",
    "dropped",
    "flow",
    "room",
    "turns",
    "lanes",
    "resting",
    "hands",
  ],
  args: [
    "channel",
    "name",
    "expected",
    "record",
    "planAt",
    "asOf",
    "set",
    "setRevision",
    "isWaking",
    "isOrdinary",
    "elementsAre",
    "ownLane",
    "formerLane",
    "leftLane",
  ],
  each: ["member", "deadline", "key", "address"],
  needs: [
    clock,
    deadlineOf,
    locate,
    may,
    mayBeElsewhere,
    packAddress,
    putNew,
    takeBack,
    dropDelayed,
    keysOf,
    unpackMember,
    wakeUp,
    writes,
  ],
  rarely: [forget, ownLanes],
  lua: /* lua */ `
local now = clock()
local elsewhere = mayBeElsewhere(isOrdinary)
if elsewhere then return elsewhere end
local held = redis.call("HGET", schedules, name)
if held == record then return { 0, false, now } end
if record == "" and not held then
  redis.call("ZREM", planning, name)
  if formerLane ~= "" then rare().takeLane(formerLane, now) end
  return { 0, false, now }
end
if (held and held:match("^(%x+)|") or "") ~= expected then return { 1, held, now } end
if set ~= "" then
  local latest = tonumber((redis.call("HGET", schedules, "\\0" .. set) or ""):match("^%d+"))
  if latest and latest > tonumber(setRevision) then return { 3, false, now } end
end

local waiting = leftLane ~= "" and rare().runsIn(leftLane, ${AT_ONCE}) or {}
if #waiting >= ${AT_ONCE} then
  rare().mayLeaveRoom()
  redis.call("EXISTS", room)
  rare().withdrawRuns(waiting)
  return { 4, false, now }
end

local head = tonumber(redis.call("ZRANGE", timeouts, 0, 0, "WITHSCORES")[2]) or math.huge
local deadlines, elements, entries, members, leaving, first = {}, {}, {}, {}, {}, math.huge
local keys = {}
for each row do
  if member == "" then
    local due = deadlineOf(address)
    if due > tonumber(asOf) and due <= now / 1000 then return { 2, false, now } end
    leaving[#leaving + 1] = locate(timeouts, address)
  else
    local at = packAddress(tonumber(deadline), member)
    first = math.min(first, tonumber(deadline))
    deadlines[#deadlines + 1], members[#members + 1] = tonumber(deadline), member
    elements[#elements + 1] = elementsAre == "members" and member or at
    entries[#entries + 1], entries[#entries + 2] = key, at .. "\\0"
    keys[#keys + 1] = key
  end
end
-- The record may have been lost, and declared again: then the messages of its ticks are still there.
for i, entry in ipairs(expected == "" and #keys > 0 and redis.call("HMGET", businessKeys, unpack(keys)) or {}) do
  local former = entry and #entry > 24 and locate(timeouts, entry:sub(1, 24))
  if former and select(3, unpackMember(former)) == keys[i] then leaving[#leaving + 1] = former end
end
local freed = keysOf(leaving)

if isWaking == "1" then wrote(nil, wakeUp(0)) else wrote(nil, wakeUp(first, head)) end
attempt(may, "ZREM", timeouts)
if #waiting > 0 then
  attempt(rare().mayLeaveRoom)
  attempt(redis.call, "EXISTS", room)
end
local function withdraw()
  if #leaving > 0 then
    dropDelayed(leaving, freed)
    if elementsAre == "members" then rare().forget(leaving) end
  end
  if #waiting > 0 then rare().withdrawRuns(waiting) end
  -- A lane that nobody needs does no harm.
  if formerLane ~= "" then pcall(rare().takeLane, formerLane, now) end
end
if record == "" then
  try("HDEL", schedules, name)
  hint("ZREM", planning, name)
  hint("HDEL", running, name)
  hint("HDEL", dropped, "deliverWithin\\0" .. name, "overlap\\0" .. name)
  if not refused() then withdraw() end
  return done({ 0, false, now })
end

if ownLane ~= "" then
  local given
  attempt(function() given = rare().giveLane(ownLane) end)
  if given then wrote(function() pcall(rare().takeLane, ownLane, now) end) end
end
local before = redis.call("ZSCORE", planning, name)
write(function()
  if before then redis.pcall("ZADD", planning, before, name) else redis.pcall("ZREM", planning, name) end
end, "ZADD", planning, planAt, name)
if #members > 0 and not refused() then
  -- A copy of the call has found its own record.
  wrote(function() takeBack(members) end, putNew(members, deadlines, elements) or 0)
end
try("HSET", schedules, name, record)
if not refused() then withdraw() end
-- If Redis refuses the index, messages are without their keys.
if #entries > 0 then hint("HSET", businessKeys, unpack(entries)) end
return done({ 0, false, now })
`,
  reply: (raw): PlanReply =>
    asRow(raw, {
      outcome: (number) => OUTCOMES[asNumber(number)] ?? "stale",
      held: orNothing(asBuffer),
      serverTime: asInstant,
    }),
});

/**
 * Notes that a set of schedules is declared in this revision, with a digest of its content; returns the revision that was
 * noted last: it is later if this one is outdated; and whether this one was noted with another digest. Nothing was changed
 * in either case. `isOrdinary`: see the fragment `mayBeElsewhere`.
 */
export const raiseSet = defineScript({
  name: "raise-set",
  keys: ["schedules"],
  args: ["set", "revision", "digest", "isOrdinary"],
  needs: [mayBeElsewhere],
  lua: /* lua */ `
local elsewhere = mayBeElsewhere(isOrdinary)
if elsewhere then return elsewhere end
local noted = redis.call("HGET", schedules, "\\0" .. set) or ""
local latest = tonumber(noted:match("^%d+"))
if latest and latest > tonumber(revision) then return { string.format("%.0f", latest), 0 } end
local content = noted:match(" (%x+)$")
if latest == tonumber(revision) and content then return { revision, content == digest and 0 or 1 } end
redis.call("HSET", schedules, "\\0" .. set, revision .. " " .. digest)
return { revision, 0 }
`,
  reply: (raw) => asRow(raw, { latest: (text) => Number(asText(text)), isConflict: asFlag }),
});
