import { asInstant, clock } from "../fragments/clock.ts";
import { asDeadline, replied } from "../fragments/deadline.ts";
import { inFlight } from "../fragments/in-flight.ts";
import { scheduleNames } from "../fragments/schedule-names.ts";
import { fieldsOf } from "../fragments/stream.ts";
import { asArray, asFlag, asNumber, asRow, asText, orNothing } from "../reply.ts";
import { defineScript } from "../script.ts";

/** The numbers of a queue that users see as Redis replies them. */
export interface QueueCounts {
  /** Messages that wait for their deadline, or are due but not moved yet. */
  readonly delayed: number;
  /** Messages and retries that are due but not moved yet. */
  readonly overdue: number;
  /**
   * Messages that can be taken: in the LIST, or in the stream and not in flight. With several groups, each group's
   * messages count.
   *
   * With several groups the number is approximate. A retry that is ready for one group counts for every group. Where
   * Redis does not report a group's lag (before 7.0, and while entries that it has not read yet are deleted), a group
   * with 100 or more unread entries also counts messages that it has finished and other groups have not.
   */
  readonly ready: number;
  /** Messages of a reliable queue that consumers of any group hold. */
  readonly inFlight: number;
  /** Messages of a reliable queue that wait for their next attempt. */
  readonly retries: number;
  /** Dead letters of a reliable queue. */
  readonly dead: number;
  /**
   * Due messages that were dropped because of their `onlyIf` or `deliverWithin`, or because another run of their schedule
   * was ready or in flight, since the queue's first one. It grows until the queue is deleted.
   */
  readonly dropped: number;
  /** Those of `dropped` that were too late: their `deliverWithin` had passed before any process moved them. */
  readonly droppedLate: number;
  /** Those of `dropped` that were runs of a schedule with `overlap: "skip"`, while another one was ready or in flight. */
  readonly droppedOverlap: number;
  /** Payloads and messages in the quarantine. */
  readonly quarantined: number;
  /**
   * Handled messages that Redis still remembers, once for each group that has handled them: with the option `keepHandled`.
   * At most some 100,000 per queue or partition. 0 without the option.
   */
  readonly remembered: number;
  /** Schedules, also those that are paused or over. */
  readonly schedules: number;
  /**
   * Schedules whose next messages should have been placed a minute ago, and were not: no process can plan them, or Redis has
   * lost when to.
   */
  readonly unplanned: number;
  /** The earliest deadline of a message or retry (epoch ms), which may be past; undefined if there is none. */
  readonly nextDeadline: number | undefined;
  /**
   * For how many milliseconds the oldest ready message has been ready. Undefined if none is ready, and for a plain
   * queue, whose ready LIST holds no times.
   */
  readonly oldestReadyAge: number | undefined;
  /**
   * For how many milliseconds the message that was handed out longest ago has been in flight: how long its handler has
   * run. Undefined if none is in flight, or each waits for the rest of its pause in strict order.
   */
  readonly oldestInFlightAge: number | undefined;
  /**
   * How many messages have become ready in a reliable queue since its stream was created; each retry counts again. It
   * grows until the stream is dropped: the difference between two calls is the throughput.
   *
   * Undefined for a plain queue; before Redis 7.0; while there are messages that no group has begun to read;
   * occasionally with several groups; and for a partitioned queue while it is undefined for any reliable partition.
   */
  readonly readied: number | undefined;
  /**
   * How many of the messages in `readied` have left the stream: acknowledged by every group, dead, or waiting for a
   * retry. Undefined when `readied` is.
   */
  readonly finished: number | undefined;
}

export interface StatsReply extends QueueCounts {
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
  delayed: asNumber,
  overdue: asNumber,
  ready: asNumber,
  inFlight: asNumber,
  retries: asNumber,
  dead: asNumber,
  dropped: asNumber,
  droppedLate: asNumber,
  droppedOverlap: asNumber,
  quarantined: asNumber,
  remembered: asNumber,
  schedules: asNumber,
  unplanned: asNumber,
  nextDeadline: orNothing(asDeadline),
  oldestReadyAge: orNothing(asNumber),
  oldestInFlightAge: orNothing(asNumber),
  consumers: asNumber,
  listeners: asNumber,
  readied: orNothing(asNumber),
  finished: orNothing(asNumber),
  pauseReason: orNothing(asText),
};

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
  args: ["channel"],
  needs: [clock, fieldsOf, inFlight, replied, scheduleNames],
  lua: /* lua */ `
local now = clock()
local latest = math.floor(now / 1000)
local count = redis.call("ZCARD", timeouts)
local waiting = redis.call("ZCARD", retries)
local overdue, next = 0, false
for _, key in ipairs({ timeouts, retries }) do
  local head = tonumber(redis.call("ZRANGE", key, 0, 0, "WITHSCORES")[2])
  if head then
    next = math.min(next or head, head)
    if head <= latest then overdue = overdue + redis.call("ZCOUNT", key, "-inf", latest) end
  end
end
local listed, length = redis.call("LLEN", ready), redis.call("XLEN", stream)
local readable, pending, longest, consumers, oldest, added = 0, 0, false, 0, false, false
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
    for _, found in ipairs(page) do
      local owner = fieldsOf(found[2]).g
      if not owner or owner == group.name then count = count + 1 end
    end
    return count
  end
  if #groups == 0 then look("-") end
  for _, fields in ipairs(groups) do
    local group = fieldsOf(fields)
    pending = pending + group.pending
    -- A group hands out entries in the order of the stream. Only an exclusive consumer keeps some aside that it has not
    -- handed out, and Redis counts no delivery of these.
    for _, most in ipairs(group.pending > 0 and { 20, 1000 } or {}) do
      for _, row in ipairs(inFlight(group.name, "-", "+", most)) do
        if row[4] > 0 then longest = math.max(longest or 0, row[3]) end
      end
      if longest or group.pending <= most then break end
    end
    consumers = consumers + group.consumers
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
  added = math.max(length, added - (type(again) == "string" and tonumber(again) or 0))
end
local age = oldest and math.max(0, math.floor(now / 1000 - oldest))
local drops = redis.pcall("HMGET", dropped, "onlyIf", "deliverWithin", "overlap")
local function dropsOf(i) return tonumber(drops[i] or 0) or 0 end
local remembered = redis.pcall("XLEN", handled)
local scheduled, unplanned = 0, 0
if redis.call("EXISTS", planning, schedules) > 0 then
  scheduled = redis.call("ZCARD", planning)
  if scheduled > 0 then
    unplanned = redis.call("ZCOUNT", planning, "-inf", latest - 60000)
  else
    -- Records of schedules without anything that says when to plan them: that key was lost.
    scheduled = #scheduleNames()
    unplanned = scheduled
  end
end
-- Of another type, the key pauses the queue all the same.
local pause = redis.pcall("GET", paused)
local reason = type(pause) == "string" and pause ~= "1" and pause
local subscribed = redis.pcall("PUBSUB", "NUMSUB", channel)
return {
  now,
  isReliable,
  pause and 1 or 0,
  count,
  overdue,
  listed + readable,
  pending,
  waiting,
  redis.call("XLEN", dead),
  dropsOf(1) + dropsOf(2) + dropsOf(3),
  dropsOf(2),
  dropsOf(3),
  redis.call("LLEN", quarantine) + redis.call("LLEN", unreadable),
  type(remembered) == "number" and remembered or 0,
  scheduled,
  unplanned,
  next and replied(next),
  age,
  longest,
  consumers,
  subscribed[2] or -1,
  added or false,
  added and added - length,
  reason or false,
}
`,
  reply: (raw): StatsReply => asRow(raw, COLUMNS),
});

/**
 * Whether a queue has no partitions, and the numbers that {@link stats} counted before, as `known` has them (see
 * {@link textOf}). Costs Redis what they cost; its caller has next to nothing to do where the answer is yes.
 */
export const isUnchanged = defineScript({
  name: "is-unchanged",
  keys: [...stats.keys, "partitions"],
  args: ["channel", "known"],
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

/**
 * Counts the messages and retries that fall due in each of `count` spans of `step` milliseconds, from `from` on (epoch
 * ms). O(log N) for each span, about 2 us.
 */
export const forecast = defineScript({
  name: "forecast",
  keys: ["timeouts", "retries"],
  args: ["from", "step", "count"],
  lua: /* lua */ `
local counts = {}
local hasRetries = redis.call("EXISTS", retries) == 1
for i = 0, count - 1 do
  local first = string.format("%.17g", from + i * step)
  local last = string.format("(%.17g", from + (i + 1) * step)
  local due = redis.call("ZCOUNT", timeouts, first, last)
  if hasRetries then due = due + redis.call("ZCOUNT", retries, first, last) end
  counts[i + 1] = due
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
