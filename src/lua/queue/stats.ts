import { asInstant, clock } from "../fragments/clock.ts";
import { info } from "../fragments/stream/info.ts";
import { asDeadline, replied } from "../fragments/message/replied.ts";
import { asFlag, asNumber, asRow, orNothing } from "../reply.ts";
import { defineScript } from "../script.ts";

/** Numbers that are for users as Redis tells them. */
export interface QueueCounts {
  /** Messages that wait for their deadline, or are due and not moved yet. */
  readonly delayed: number;
  /** Messages and retries that are due, and not moved yet. */
  readonly overdue: number;
  /**
   * Messages that can be taken: in the LIST, or in the stream and in nobody's hands. Several groups count each their own, and
   * then it is approximate: retries that are ready for one group count for the others, too; and of a group that is 100
   * messages or more behind, what it has finished and others have not, where Redis does not tell how far it is behind (before 7.0, and
   * while messages are gone that it has not come to).
   */
  readonly ready: number;
  /** Messages of a reliable queue that are in the hands of consumers, of all groups. */
  readonly inFlight: number;
  /** Messages of a reliable queue that wait for their next attempt. */
  readonly retries: number;
  /** Dead letters of a reliable queue. */
  readonly dead: number;
  /** What nobody could read. */
  readonly quarantined: number;
  /** The earliest deadline of a message or retry (epoch ms), which may be past; undefined if there is none. */
  readonly nextDeadline: number | undefined;
  /**
   * For how many milliseconds the oldest ready message has been ready; undefined if none is, and of a plain queue, whose
   * ready LIST holds payloads and no times.
   */
  readonly oldestReadyAge: number | undefined;
  /**
   * How many messages have become ready in the stream of a reliable queue since it was made, each retry counted again. It only
   * grows, until the stream is dropped; two looks tell the throughput. Undefined of a plain queue, which counts nothing;
   * while there are messages that no group has begun to read; now and then with several groups; before Redis 7.0; and of a queue in partitions as
   * long as one that has a stream does not tell.
   */
  readonly readied: number | undefined;
  /**
   * How many of them have left the stream: acknowledged by every group, dead, or waiting for a retry. Otherwise as
   * `readied`.
   */
  readonly finished: number | undefined;
}

/** What the script replies. */
export interface StatsReply extends QueueCounts {
  /** The server's clock (epoch ms). */
  readonly serverTime: number;
  readonly isReliable: boolean;
  readonly isPaused: boolean;
  /** 0 of a plain queue. */
  readonly consumers: number;
  /** -1 if Redis does not tell. */
  readonly listeners: number;
}

/**
 * What is in a queue, in one step. O(log N), and O(1) for each consumer group; it reads no message but the oldest that
 * is ready, of which Redis has to send the fields along; and a page of 100 for each of several groups of which Redis does not tell how
 * far it is behind.
 *
 * What is ready in a stream: an entry that one group has finished is deleted, so it is what is not in flight. With
 * several groups it is what each of them has not read yet, if Redis tells: it does not before 7.0, nor while an entry is gone
 * that the group has not come to. Then a page is read; a group that is farther behind counts what is not in flight for it,
 * with what it has finished and others have not. What Redis tells has what is for other groups alone in it.
 *
 * What was ever added to it is what a group has read and what it has not. `XINFO STREAM` tells it, too, but sends two entries
 * along, so only an empty stream is asked. Redis counts what a group reads from its first read on (7.0).
 */
export const stats = defineScript({
  name: "stats",
  keys: ["timeouts", "ready", "paused", "quarantine", "unreadable", "stream", "retries", "dead"],
  args: ["channel"],
  needs: [clock, info, replied],
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
local readable, inFlight, consumers, oldest, added = 0, 0, 0, false, false
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
      local owner = infoOf(found[2]).g
      if not owner or owner == group.name then count = count + 1 end
    end
    return count
  end
  if #groups == 0 then look("-") end
  for _, fields in ipairs(groups) do
    local group = infoOf(fields)
    inFlight = inFlight + group.pending
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
  if not added and length == 0 then added = infoOf(redis.call("XINFO", "STREAM", stream))["entries-added"] end
end
local age = oldest and math.max(0, math.floor(now / 1000 - oldest))
local subscribed = redis.pcall("PUBSUB", "NUMSUB", channel)
return {
  now,
  isReliable,
  redis.call("EXISTS", paused),
  count,
  overdue,
  listed + readable,
  inFlight,
  waiting,
  redis.call("XLEN", dead),
  redis.call("LLEN", quarantine) + redis.call("LLEN", unreadable),
  next and replied(next),
  age,
  consumers,
  subscribed[2] or -1,
  added or false,
  added and added - length,
}
`,
  reply: (raw): StatsReply =>
    asRow(raw, {
      serverTime: asInstant,
      isReliable: asFlag,
      isPaused: asFlag,
      delayed: asNumber,
      overdue: asNumber,
      ready: asNumber,
      inFlight: asNumber,
      retries: asNumber,
      dead: asNumber,
      quarantined: asNumber,
      nextDeadline: orNothing(asDeadline),
      oldestReadyAge: orNothing(asNumber),
      consumers: asNumber,
      listeners: asNumber,
      readied: orNothing(asNumber),
      finished: orNothing(asNumber),
    }),
});
