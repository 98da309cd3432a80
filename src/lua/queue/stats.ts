import { COUNTED, NUMBERS, type QueueNumbers } from "../../nouns/numbers.ts";
import { asInstant, clock } from "../fragments/clock.ts";
import { asDeadline, replied } from "../fragments/deadline.ts";
import { dueZsets } from "../places/due.ts";
import { inFlight } from "../places/in-flight.ts";
import { paceAt } from "../places/pace.ts";
import { waitingRetries } from "../places/retries.ts";
import { scheduleNames } from "../places/schedules.ts";
import { fieldsOf } from "../fragments/stream-info.ts";
import { asArray, asFlag, asNumber, asRow, asText, orNothing } from "../reply.ts";
import { defineScript } from "../script.ts";

/** The numbers of a queue as Redis replies them. */
export interface StatsReply extends QueueNumbers {
  /** The server's clock (epoch ms). */
  readonly serverTime: number;
  readonly isReliable: boolean;
  readonly isPaused: boolean;
  readonly pauseReason: string | undefined;
  /** 0 for a plain queue. */
  readonly consumers: number;
  /** -1 if Redis refuses to say. */
  readonly listeners: number;
}

/** What {@link stats} replies, in this order. */
const COLUMNS = {
  serverTime: asInstant,
  isReliable: asFlag,
  isPaused: asFlag,
  ...Object.fromEntries(COUNTED.map((name) => [name, readerOf(NUMBERS[name])])),
  pauseReason: orNothing(asText),
};

function readerOf({ unit, merge }: Pick<(typeof NUMBERS)[keyof QueueNumbers], "unit" | "merge">) {
  if (merge === "sum") return asNumber;
  return orNothing(unit === "instant" ? asDeadline : asNumber);
}

/**
 * Counts what is in a queue, in one step. O(log N), and O(1) for each consumer group. It reads the oldest ready message
 * (XRANGE cannot leave out its fields) and, for each of several groups without a lag, a page of 100 messages.
 *
 * How many messages of a stream are ready: with one group, all entries that are not in flight, since an entry that the
 * group has finished is deleted. With several groups, each group's `lag`, which includes entries that are for other
 * groups alone. Redis reports no lag before 7.0, and while an entry that the group has not read yet is deleted. Then a
 * page of its unread entries is counted. If a page is not enough, all entries that are not in flight for the group
 * count, among them those that it has finished and other groups have not.
 *
 * How many entries were ever added: those that a group has read, plus those that it has not. Redis counts the former
 * from the group's first read on (7.0). `XINFO STREAM` replies with the number, but also with two whole entries, so it
 * is asked only about an empty stream. A message that is given back gets a new entry, but has become ready only once:
 * `returned` counts these.
 */
export const stats = defineScript({
  name: "stats",
  keys: [
    "timeouts",
    "ready",
    "paused",
    "flow",
    "room",
    "turns",
    "dropped",
    "quarantine",
    "unreadable",
    "stream",
    "returned",
    "retries",
    "dead",
    "handled",
    "planning",
    "schedules",
  ],
  args: ["channel", "shares"],
  needs: [clock, dueZsets, fieldsOf, inFlight, paceAt, replied, scheduleNames, waitingRetries],
  lua: /* lua */ `
local now = clock()
local latest = math.floor(now / 1000)
local found = {
  delayed = redis.call("ZCARD", timeouts),
  overdue = 0,
  waiting = 0,
  inFlight = 0,
  retries = redis.call("ZCARD", retries),
  dead = redis.call("XLEN", dead),
  quarantined = redis.call("LLEN", quarantine) + redis.call("LLEN", unreadable),
  consumers = 0,
}
local next
local inRoom = redis.call("HLEN", room)
found.delayed = found.delayed + inRoom
for _, zset in ipairs(dueZsets) do
  local head = tonumber(redis.call("ZRANGE", zset, 0, 0, "WITHSCORES")[2])
  if head then
    next = math.min(next or head, head)
    if head <= latest then found.overdue = found.overdue + redis.call("ZCOUNT", zset, "-inf", latest) end
  end
end
if found.overdue > 0 then
  local pace = paceAt(now, 0, shares)
  -- One that could have gone a second ago waits for a process, not for its turn.
  if pace and pace.since > now - 1000000 then found.waiting, found.overdue = found.overdue, 0 end
end
if redis.call("EXISTS", turns) == 1 then
  -- The mover has said when it looks again.
  local look = tonumber(redis.pcall("HGET", flow, "look") or nil) or 0
  local count = inRoom + waitingRetries()
  if look < latest - 1000 then
    found.overdue, next = found.overdue + count, math.min(next or look, look)
  else
    found.waiting = found.waiting + count
  end
end
found.nextDeadline = next and replied(next)
local length, readable = redis.call("XLEN", stream), 0
local oldest, longest, added
local isReliable = redis.call("EXISTS", stream)
if isReliable == 1 then
  local groups = redis.call("XINFO", "GROUPS", stream)
  if #groups == 0 then readable = length end
  local function look(from)
    local first = redis.call("XRANGE", stream, from, "+", "COUNT", 1)[1]
    local at = first and tonumber(first[1]:match("^(%d+)-"))
    if at then oldest = math.min(oldest or at, at) end
  end
  local function behindOf(group)
    local page = redis.call("XRANGE", stream, "(" .. group["last-delivered-id"], "+", "COUNT", 100)
    if #page == 100 then return nil end
    local count = 0
    for _, entry in ipairs(page) do
      local owner = fieldsOf(entry[2]).g
      if not owner or owner == group.name then count = count + 1 end
    end
    return count
  end
  if #groups == 0 then look("-") end
  for _, fields in ipairs(groups) do
    local group = fieldsOf(fields)
    found.inFlight = found.inFlight + group.pending
    -- A group hands out entries in the order of the stream. Only an exclusive consumer keeps some aside that it has not
    -- handed out, and Redis counts no delivery of these.
    for _, most in ipairs(group.pending > 0 and { 20, 1000 } or {}) do
      for _, row in ipairs(inFlight(group.name, "-", "+", most)) do
        if row[4] > 0 then longest = math.max(longest or 0, row[3]) end
      end
      if longest or group.pending <= most then break end
    end
    found.consumers = found.consumers + group.consumers
    local rest = math.max(0, length - group.pending)
    if #groups > 1 then rest = math.min(rest, group.lag or behindOf(group) or rest) end
    readable = readable + rest
    local behind = #groups == 1 and rest or group.lag
    if group["entries-read"] and behind then
      added = math.max(added or 0, group["entries-read"] + behind)
    end
    if rest > 0 then look("(" .. group["last-delivered-id"]) end
  end
  if not added and length == 0 then added = fieldsOf(redis.call("XINFO", "STREAM", stream))["entries-added"] end
end
if added then
  local again = redis.pcall("GET", returned)
  found.readied = math.max(length, added - (type(again) == "string" and tonumber(again) or 0))
  found.finished = found.readied - length
end
found.ready = redis.call("LLEN", ready) + readable
found.oldestReadyAge = oldest and math.max(0, math.floor(now / 1000 - oldest))
found.oldestInFlightAge = longest
local drops = redis.pcall("HMGET", dropped, "onlyIf", "deliverWithin", "overlap")
local function dropsOf(i) return tonumber(drops[i] or 0) or 0 end
found.dropped = dropsOf(1) + dropsOf(2) + dropsOf(3)
found.droppedLate = dropsOf(2)
found.droppedOverlap = dropsOf(3)
local remembered = redis.pcall("XLEN", handled)
found.remembered = type(remembered) == "number" and remembered or 0
found.schedules, found.unplanned = 0, 0
if redis.call("EXISTS", planning, schedules) > 0 then
  found.schedules = redis.call("ZCARD", planning)
  if found.schedules > 0 then
    found.unplanned = redis.call("ZCOUNT", planning, "-inf", latest - 60000)
  else
    -- Records of schedules without anything that says when to plan them: that key was lost.
    found.schedules = #scheduleNames()
    found.unplanned = found.schedules
  end
end
-- Of another type, the key pauses the queue all the same.
local pause = redis.pcall("GET", paused)
local reason = type(pause) == "string" and pause ~= "1" and pause
found.listeners = redis.pcall("PUBSUB", "NUMSUB", channel)[2] or -1
return {
  now,
  isReliable,
  pause and 1 or 0,
  ${COUNTED.map((name) => `found.${name} or false`).join(",\n  ")},
  reason or false,
}
`,
  reply: (raw) => asRow(raw, COLUMNS) as unknown as StatsReply,
});

/**
 * Whether a queue has no partitions, and the numbers that {@link stats} counted before, as `known` has them (see
 * {@link textOf}). Costs Redis what they cost; its caller has next to nothing to do where the answer is yes.
 */
export const isUnchanged = defineScript({
  name: "is-unchanged",
  keys: [...stats.keys, "partitions"],
  args: ["channel", "shares", "known"],
  needs: stats.source.needs,
  lua: /* lua */ `
local function count()
${stats.source.body}
end
local found = count()
-- The first is the time.
for i = 2, #found do found[i - 1] = tostring(found[i] or "") end
found[#found] = nil
return table.concat(found, " ") == known and redis.call("EXISTS", partitions) == 0 and 1 or 0
`,
  reply: asFlag,
});

/** The numbers of a queue as {@link isUnchanged} compares them. */
export function textOf(reply: Omit<StatsReply, "serverTime">): string {
  return NAMES.map((name) => {
    const value = reply[name];
    return typeof value === "string" ? value : value === undefined ? "" : Number(value);
  }).join(" ");
}

const NAMES = Object.keys(COLUMNS).slice(1) as Exclude<keyof StatsReply, "serverTime">[];

/** Returns how many messages and retries wait for their turn in lanes. O(log N). */
export const countWaiting = defineScript({
  name: "count-waiting",
  keys: ["room"],
  args: [],
  needs: [waitingRetries],
  lua: /* lua */ `return redis.call("HLEN", room) + waitingRetries()`,
  reply: asNumber,
});

/**
 * Counts the messages and retries that fall due in each of `count` spans of `step` milliseconds, from `from` on (epoch
 * ms). O(log N) for each span, about 2 us.
 */
export const forecast = defineScript({
  name: "forecast",
  keys: ["timeouts"],
  args: ["from", "step", "count"],
  needs: [dueZsets],
  lua: /* lua */ `
local counts, zsets = {}, {}
for _, zset in ipairs(dueZsets) do
  if redis.call("EXISTS", zset) == 1 then zsets[#zsets + 1] = zset end
end
for i = 0, count - 1 do
  local first = string.format("%.17g", from + i * step)
  local last = string.format("(%.17g", from + (i + 1) * step)
  counts[i + 1] = 0
  for _, zset in ipairs(zsets) do counts[i + 1] = counts[i + 1] + redis.call("ZCOUNT", zset, first, last) end
end
return counts
`,
  reply: (raw) => asArray(raw).map(asNumber),
});

/**
 * Replies with the server's time (epoch ms, with fractions). On a Cluster, it reaches the node that serves the queue:
 * TIME has no key, so the client sends it to any node.
 */
export const tellTime = defineScript({
  name: "tell-time",
  keys: ["ready"],
  args: [],
  needs: [clock],
  lua: /* lua */ `return clock()`,
  reply: asInstant,
});
