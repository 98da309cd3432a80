import { byElements, type Elements, type Into } from "../family.ts";
import { defineFragment } from "../fragment.ts";
import { addressOf } from "../fragments/address.ts";
import { asInstant, clock } from "../fragments/clock.ts";
import { asDeadline, LAST_DEADLINE, replied } from "../fragments/deadline.ts";
import { appendAll } from "../fragments/entry.ts";
import { forget } from "../fragments/forget.ts";
import { ownKeys } from "../fragments/key-index.ts";
import { unpackMember } from "../fragments/member.ts";
import { bringBack } from "../fragments/retry.ts";
import { asFlag, asNumber, asRow, orNothing, type RawReply } from "../reply.ts";
import { defineScript } from "../script.ts";
import { asUntidy, untidy, type Untidy } from "./tidy.ts";

/**
 * Reads the members of a ZSET of deadlines that are due: those with scores up to `latest`, earliest first.
 *
 * `firstDue(zset, latest, count)`: the due members among the first `count`, their scores, and the score of the first
 * member that is not due, or false if all of these are due.
 * `allDue(zset, latest, limit)`: up to `limit` due members, and their scores.
 */
const due = defineFragment({
  lua: /* lua */ `
local function firstDue(zset, latest, count)
  local found = redis.call("ZRANGE", zset, 0, count - 1, "WITHSCORES")
  local members, scores = {}, {}
  for i = 1, #found, 2 do
    local score = tonumber(found[i + 1])
    if score > latest then return members, scores, score end
    members[#members + 1], scores[#scores + 1] = found[i], score
  end
  return members, scores, false
end
local function allDue(zset, latest, limit)
  local found = redis.call("ZRANGEBYSCORE", zset, "-inf", latest, "WITHSCORES", "LIMIT", 0, limit)
  local members, scores = {}, {}
  for i = 1, #found, 2 do members[#members + 1], scores[#scores + 1] = found[i], tonumber(found[i + 1]) end
  return members, scores
end
`,
});

/**
 * `pushAll(payloads)`: pushes due payloads to the ready LIST, either all or none; returns how many, and the error if
 * Redis has refused them.
 *
 * When memory is full, Redis refuses only the first write of a script, and never a removal. So a refused push is tried
 * again after a removal that removes nothing.
 */
const pushAll = defineFragment({
  keys: ["ready", "timeouts"],
  lua: /* lua */ `
local function pushAll(payloads)
  local pushed = redis.pcall("RPUSH", ready, unpack(payloads))
  if type(pushed) == "table" then
    redis.call("ZREMRANGEBYRANK", timeouts, 1, 0)
    pushed = redis.pcall("RPUSH", ready, unpack(payloads))
  end
  if type(pushed) == "table" then return 0, pushed end
  return #payloads
end
`,
});

/** The length of ids that begin with the instant of the offer, in microseconds; see `message.ts`. */
const ID_BYTES = 16;

/** How many members the first look reads. */
const LOOK = 4;

/** The reply of a transfer or a sweep. */
export interface TransferReply {
  /** How many messages became ready, including retries. */
  readonly moved: number;
  /** Where they went; undefined if nothing was due, since the script did not check for a stream then. */
  readonly wentInto: Into | undefined;
  /**
   * Since when the oldest of them was due (epoch ms): its deadline, or the instant of its offer if that is later and
   * its id contains it. Undefined if none was moved.
   */
  readonly dueSince: number | undefined;
  /** How many messages and retries of an unknown layout were set aside. */
  readonly quarantined: number;
  /** The server's time (epoch ms), to the microsecond. */
  readonly serverTime: number;
  /** The earliest deadline of the remaining messages and retries (epoch ms); Infinity if none of them is ever due. */
  readonly next: number;
  /** Whether nothing was due, and another task was the last to claim that it moves. */
  readonly isOutrun: boolean;
  /**
   * Whether the ready LIST has messages for the stream. Only the form "stream" checks, in a sweep or with a `grace`.
   */
  readonly hasListed: boolean;
  /** Of a sweep: what there is to tidy. */
  readonly untidy: Untidy | undefined;
  /** Of a sweep: whether the queue is paused. If so, nothing was moved. */
  readonly isPaused: boolean | undefined;
}

/**
 * Moves up to `limit` due messages from the ZSET to the ready LIST or the stream, earliest deadline first. With
 * `grace`, only messages that are overdue by that many milliseconds. With `claim` (1 or 0), a run that moves any writes
 * `task` into `mover`.
 *
 * A queue is reliable if its stream exists in Redis. So the form "list", which serves processes that know only the
 * plain queue, checks for the stream when something is due, and fills the stream if there is one. The form "stream"
 * also moves up to `limit` due retries back to the stream, behind the messages. With `makes` (1 or 0) it always fills
 * the stream, and so creates it again if somebody has deleted it; without, it fills the LIST if the stream is gone.
 *
 * Redis rolls nothing back, so a message is pushed before it is removed: a refused push (WRONGTYPE, an ACL) has then
 * changed nothing. A stream takes one entry at a time. If it refuses one, the messages before it have moved, and the
 * next run returns the refusal. Each claim first checks that removing is permitted, before anything is pushed.
 */
const defineTransfer = (name: "transfer" | "sweep", into: Into, elements: Elements) => {
  const isSweep = name === "sweep";
  const ifStream = (lua: string, otherwise = "") => (into === "stream" ? lua : otherwise);
  return defineScript({
    name: `${name}${into === "stream" ? "-to-stream" : ""}-${elements}`,
    keys: [
      "timeouts",
      "order",
      "compacted",
      "businessKeys",
      "ready",
      "unreadable",
      "mover",
      "paused",
      "stream",
      ...(into === "stream" ? (["retries", "retrying"] as const) : []),
    ],
    args: ["limit", "grace", "claim", "task", "makes"],
    needs: [
      clock,
      due,
      ownKeys,
      replied,
      unpackMember,
      addressOf,
      appendAll,
      pushAll,
      ...(into === "stream" ? [bringBack] : []),
      ...(elements === "members" ? [forget] : []),
      ...(isSweep ? [untidy[elements]] : []),
    ],
    lua: /* lua */ `
local now = clock()
local head, wentInto, dueSince = false, 0, math.huge
${ifStream("local names, retryDues, retryHead = {}, {}, false")}
local function reply(moved, quarantined, isOutrun)
  local next = head
  ${ifStream("if retryHead then next = math.min(retryHead, head or retryHead) end")}
  -- In other transfers an active task need not check: it watches the LIST anyway.
  local listed = ${ifStream(`(${isSweep} or grace ~= "0") and wentInto ~= 1 and redis.call("EXISTS", ready) or 0`, "0")}
  local since = moved > 0 and dueSince < math.huge and replied(dueSince)
  return { moved, quarantined, now, next and replied(next), isOutrun, wentInto, listed, since${isSweep ? ", untidy(), 0" : ""} }
end
${isSweep ? `if redis.call("EXISTS", paused) == 1 then return { 0, 0, now, false, 0, 0, 0, false, untidy(), 1 } end` : ""}
-- A message offered with a deadline in the past is late only since its offer.
local function sinceWhen(deadline, id)
  if #id ~= ${ID_BYTES} then return deadline end
  local high, low = struct.unpack(">I4I4", id)
  local stamp = math.floor((high * 4294967296 + low) / 1000)
  return stamp < now / 1000 and math.max(deadline, stamp) or deadline
end
local latest = math.floor(now / 1000) - grace
-- Reading the first few members usually suffices to find all that are due, and the next deadline.
local few = math.min(${LOOK}, limit)
local due, scores
due, scores, head = firstDue(timeouts, latest, few)
local isMore = #due == few
${ifStream(`names, retryDues, retryHead = firstDue(retries, latest, few)
local areMoreRetries = #names == few`)}
if #due == 0 ${ifStream("and #names == 0")} then
  local mover = redis.pcall("GET", mover)
  return reply(0, 0, type(mover) == "string" and mover ~= task and 1 or 0)
end
local isStream = ${ifStream(`makes == "1" or `)}redis.call("EXISTS", stream) == 1
wentInto = isStream and 2 or 1
${ifStream("if not isStream then names, retryHead, areMoreRetries = {}, false, false end")}
if isMore then
  if isStream then
    due, scores = allDue(timeouts, latest, limit)
  else
    due = redis.call("ZRANGEBYSCORE", timeouts, "-inf", latest, "LIMIT", 0, limit)
  end
end
local messages, readable, poison, keyed, ids = {}, {}, {}, {}, {}
for i, member in ipairs(due) do
  local id, payload, key, trailer = unpackMember(member)
  if payload then
    if #messages == 0 and scores[i] then dueSince = sinceWhen(scores[i], id) end
    messages[#messages + 1] = isStream and { a = addressOf(scores[i], id), p = payload, t = trailer } or payload
    readable[#readable + 1] = member
  else
    poison[#poison + 1] = member
  end
  if key then
    keyed[#keyed + 1] = key
    ids[#ids + 1] = id
  end
end
local own = ownKeys(keyed, ids)
${ifStream(`if areMoreRetries then names = allDue(retries, latest, limit) end
local found = readRetries(names)
if #names > 0 then mayDropRetries() end`)}
if claim == "1" then redis.call("ZREMRANGEBYRANK", timeouts, 1, 0) end
if #poison > 0 then
  redis.call("ZREM", timeouts, "delayline: no such member")
  redis.call("RPUSH", unreadable, unpack(poison))
  redis.call("ZREM", timeouts, unpack(poison))
end
local quarantined, moved, refusal = #poison, 0, nil
if #messages > 0 then
  if isStream then moved, refusal = appendAll(messages) else moved, refusal = pushAll(messages) end
  if moved > 0 then redis.call("ZREMRANGEBYRANK", timeouts, 0, moved - 1) end
end
local gone = due
if refusal then
  -- Refused messages stay. The index entries of the messages before them point to nothing now, which does no harm.
  gone, own, isMore = poison, {}, true
  for i = 1, moved do gone[#gone + 1] = readable[i] end
end
${ifStream(`if not refusal and #names > 0 then
  local back
  back, refusal = bringBack(found)
  if back > 0 then dueSince = math.min(dueSince, retryDues[1]) end
  moved, quarantined = moved + back, quarantined + #found.unreadable
  areMoreRetries = areMoreRetries or refusal
end`)}
-- If anything has moved, the reply has to say so. The next run returns the refusal.
if refusal and moved + quarantined == 0 then return refusal end
${elements === "members" ? "if #gone > 0 then forget(gone) end" : ""}
-- A refusal leaves entries and elements that point to nothing. A step of tidying removes them, or reports it.
if #own > 0 then redis.pcall("HDEL", businessKeys, unpack(own)) end
if isMore then head = tonumber(redis.call("ZRANGE", timeouts, 0, 0, "WITHSCORES")[2]) or false end
${ifStream(`if areMoreRetries then retryHead = tonumber(redis.call("ZRANGE", retries, 0, 0, "WITHSCORES")[2]) or false end`)}
if #due > 0 and not head then
  -- No message is left, so every element of the insertion order is dead.
  redis.pcall("UNLINK", order, compacted, businessKeys)
end
-- Last, since Redis may refuse it: then only the claim is missing.
if moved > 0 and claim == "1" then redis.call("SET", mover, task, "EX", 3600) end
return reply(moved, quarantined, 0)
`,
    reply: (raw: RawReply): TransferReply =>
      asRow(raw, {
        moved: asNumber,
        quarantined: asNumber,
        serverTime: asInstant,
        next: asNextDeadline,
        isOutrun: asFlag,
        wentInto: (number) => WENT_INTO[asNumber(number)],
        hasListed: asFlag,
        dueSince: orNothing(asDeadline),
        untidy: orNothing(asUntidy),
        isPaused: orNothing(asFlag),
      }),
  });
};

/** A message with a score beyond all deadlines (+inf, Java's Long.MAX_VALUE) is never due. */
function asNextDeadline(raw: RawReply | undefined): number {
  const next = orNothing(asDeadline)(raw) ?? Infinity;
  return next > LAST_DEADLINE ? Infinity : next;
}

/** The meaning of `wentInto` in a reply. */
const WENT_INTO: readonly (Into | undefined)[] = [undefined, "list", "stream"];

/** Moves due messages. */
export const transfer = {
  list: byElements((elements) => defineTransfer("transfer", "list", elements)),
  stream: byElements((elements) => defineTransfer("transfer", "stream", elements)),
};

/**
 * Moves due messages unless the queue is paused, and also returns whether it is, and whether there is something to
 * tidy.
 *
 * A transfer does not check for the pause, which saves a command each time. Its caller sweeps when it hears of a pause.
 */
export const sweep = {
  list: byElements((elements) => defineTransfer("sweep", "list", elements)),
  stream: byElements((elements) => defineTransfer("sweep", "stream", elements)),
};

/**
 * Announces that a transfer task ends, if that task moved messages last: deletes `mover`, and wakes all tasks. Returns
 * whether the task was the last mover.
 *
 * `0` on the channel means "look now", for Java clients as well.
 */
export const retire = defineScript({
  name: "retire",
  keys: ["mover"],
  args: ["channel", "task"],
  lua: /* lua */ `
if redis.pcall("GET", mover) ~= task then return 0 end
-- Publish first: if that is refused, nothing has changed, and nobody can look before the script has ended.
redis.call("PUBLISH", channel, 0)
redis.call("DEL", mover)
return 1
`,
  reply: asFlag,
});
