import { byElements, type Elements } from "../family.ts";
import { asInstant, clock } from "../fragments/clock.ts";
import { forget } from "../fragments/forget.ts";
import { ownKeys } from "../fragments/own-keys.ts";
import { asDeadline, LAST_DEADLINE, replied } from "../fragments/replied.ts";
import { unpackMember } from "../fragments/unpack-member.ts";
import { asArray, asNumber, defineScript, type RawReply } from "../script.ts";
import { asUntidy, untidy, type Untidy } from "../fragments/untidy.ts";

/** How many members the first look takes in. */
const LOOK = 4;

export interface TransferReply {
  /** How many messages went to the ready LIST. */
  readonly moved: number;
  /** How many went to the quarantine, since nobody can unpack them. */
  readonly quarantined: number;
  /** The server's clock (epoch ms), to the microsecond. */
  readonly serverTime: number;
  /** The deadline of the first message that is left (epoch ms), or Infinity: nothing is ever due. */
  readonly next: number;
  /** Nothing was due, and the last that claimed to move is another task than the caller. */
  readonly isOutrun: boolean;
  /** What there is to tidy, if this was a sweep. */
  readonly untidy: Untidy | undefined;
  /** Whether the queue is paused, if this was a sweep. Then nothing has been moved. */
  readonly isPaused: boolean | undefined;
}

/**
 * Moves messages that are due, `limit` at most, from the ZSET to the ready LIST, oldest deadline
 * first. `grace` milliseconds: takes only what is overdue by as much. `claim` (1 or 0): if it moves
 * any, says that `task` moves.
 *
 * Redis rolls nothing back, so a message is pushed before it is removed: a push that is refused
 * (WRONGTYPE, an ACL) has changed nothing. When memory is full Redis refuses only the first write of a
 * script, and never a removal, so a push that is refused is tried again after a removal of nothing.
 * That removing is permitted at all is tried with each claim, before anything is pushed.
 */
const defineTransfer = (name: "transfer" | "sweep", elements: Elements) =>
  defineScript({
    name: `${name}-${elements}`,
    keys: [
      "timeouts",
      "order",
      "compacted",
      "businessKeys",
      "ready",
      "unreadable",
      "mover",
      "paused",
    ],
    args: ["limit", "grace", "claim", "task"],
    needs: [
      clock,
      ownKeys,
      replied,
      unpackMember,
      ...(elements === "members" ? [forget] : []),
      ...(name === "sweep" ? [untidy[elements]] : []),
    ],
    lua: /* lua */ `
local now = clock()
local function reply(moved, quarantined, head, isOutrun)
  return { moved, quarantined, now, head and replied(head), isOutrun${name === "sweep" ? ", untidy(), 0" : ""} }
end
${name === "sweep" ? `if redis.call("EXISTS", paused) == 1 then return { 0, 0, now, false, 0, untidy(), 1 } end` : ""}
local latest = math.floor(now / 1000) - grace
-- One look at the first few mostly shows all that are due and the first that is left.
local few = math.min(${LOOK}, limit)
local look = redis.call("ZRANGE", timeouts, 0, few - 1, "WITHSCORES")
local due, head = {}, false
for i = 2, #look, 2 do
  if tonumber(look[i]) > latest then
    head = tonumber(look[i])
    break
  end
  due[#due + 1] = look[i - 1]
end
local isMore = #due == few
if isMore then due = redis.call("ZRANGEBYSCORE", timeouts, "-inf", latest, "LIMIT", 0, limit) end
if #due == 0 then
  local mover = redis.pcall("GET", mover)
  return reply(0, 0, head, type(mover) == "string" and mover ~= task and 1 or 0)
end
local payloads, poison, keyed, ids = {}, {}, {}, {}
for _, member in ipairs(due) do
  local id, payload, key = unpackMember(member)
  if payload then payloads[#payloads + 1] = payload else poison[#poison + 1] = member end
  if key then
    keyed[#keyed + 1] = key
    ids[#ids + 1] = id
  end
end
local own = ownKeys(keyed, ids)
if claim == "1" then redis.call("ZREMRANGEBYRANK", timeouts, 1, 0) end
if #poison > 0 then
  redis.call("ZREM", timeouts, "delayline: no such member")
  redis.call("RPUSH", unreadable, unpack(poison))
  redis.call("ZREM", timeouts, unpack(poison))
end
if #payloads > 0 then
  local pushed = redis.pcall("RPUSH", ready, unpack(payloads))
  if type(pushed) == "table" then
    redis.call("ZREMRANGEBYRANK", timeouts, 1, 0)
    pushed = redis.pcall("RPUSH", ready, unpack(payloads))
  end
  if type(pushed) == "table" then
    -- What went to the quarantine has to be reported; the next run reports this.
    if #poison > 0 then return reply(0, #poison, latest, 0) end
    return pushed
  end
  redis.call("ZREMRANGEBYRANK", timeouts, 0, #payloads - 1)
  if claim == "1" then redis.call("SET", mover, task, "EX", 3600) end
end
${elements === "members" ? "if #due > 0 then forget(due) end" : ""}
if #own > 0 then redis.call("HDEL", businessKeys, unpack(own)) end
if isMore then head = tonumber(redis.call("ZRANGE", timeouts, 0, 0, "WITHSCORES")[2]) or false end
if not head then
  -- No message is left, so every element of the insertion order is dead.
  redis.call("UNLINK", order, compacted, businessKeys)
end
return reply(#payloads, #poison, head, 0)
`,
    reply: (raw: RawReply): TransferReply => {
      const [moved, quarantined, serverTime, head, isOutrun, found, isPaused] = asArray(raw);
      const next = head === null ? Infinity : asDeadline(head);
      return {
        moved: asNumber(moved),
        quarantined: asNumber(quarantined),
        serverTime: asInstant(serverTime),
        // A score beyond all deadlines (+inf, Java's Long.MAX_VALUE) keeps a message for ever.
        next: next > LAST_DEADLINE ? Infinity : next,
        isOutrun: asNumber(isOutrun) === 1,
        untidy: found === undefined ? undefined : asUntidy(found),
        isPaused: isPaused === undefined ? undefined : asNumber(isPaused) === 1,
      };
    },
  });

export const transfer = {
  list: byElements((elements) => defineTransfer("transfer", elements)),
  stream: byElements((elements) => defineTransfer("transfer", elements)),
};

/**
 * Also tells whether there is something to tidy, and whether the queue is paused. If it is, nothing is moved.
 * A transfer does not ask: it costs nothing that queues can be paused, and its caller sweeps when it hears of it.
 */
export const sweep = {
  list: byElements((elements) => defineTransfer("sweep", elements)),
  stream: byElements((elements) => defineTransfer("sweep", elements)),
};
