import { forget } from "./forget.ts";
import { clock, unpackMember } from "./fragments.ts";
import { asArray, asNumber, defineScript, type RawReply } from "./script.ts";

export interface TransferReply {
  /** How many messages went to the target LIST. */
  readonly moved: number;
  /** How many went to the quarantine, since nobody can unpack them. */
  readonly quarantined: number;
  /** The server's clock in microseconds. */
  readonly serverTime: number;
  /** The deadline of the first message that is left (epoch ms), or Infinity. */
  readonly next: number;
  /** Whether the task that moved messages last is another one than the caller. */
  readonly isOutrun: boolean;
}

/**
 * Moves messages that are due, `limit` at most, from the ZSET to the target LIST, oldest deadline
 * first. `grace` milliseconds: takes only what is overdue by as much.
 *
 * Redis rolls nothing back, so a message is pushed before it is removed: a push that is refused
 * (WRONGTYPE, an ACL) has changed nothing. And the script begins with a removal of nothing: when
 * memory is full Redis refuses only the first write of a script, and never a removal, so messages
 * still move; and if removing were forbidden, it shows before anything is pushed.
 */
const defineTransfer = (name: string, isExact: boolean) =>
  defineScript({
    name,
    keys: ["timeouts", "order", "compacted", "ghosts", "index", "target", "quarantine", "mover"],
    args: ["limit", "grace", "task"],
    fragments: [clock, unpackMember, ...(isExact ? [forget] : [])],
    lua: /* lua */ `
local now = clock()
local lastMover = redis.call("GET", mover)
local due = redis.call("ZRANGEBYSCORE", timeouts, "-inf", math.floor(now / 1000) - grace, "LIMIT", 0, limit)
local payloads, poison, keyed, ids = {}, {}, {}, {}
for _, member in ipairs(due) do
  local id, payload, key = unpackMember(member)
  if payload then payloads[#payloads + 1] = payload else poison[#poison + 1] = member end
  if key then
    keyed[#keyed + 1] = key
    ids[#ids + 1] = id
  end
end
local entries = #keyed > 0 and redis.call("HMGET", index, unpack(keyed))
if #due > 0 then redis.call("ZREMRANGEBYRANK", timeouts, 1, 0) end
if #poison > 0 then
  redis.call("ZREM", timeouts, "delayline: no such member")
  redis.call("RPUSH", quarantine, unpack(poison))
  redis.call("ZREM", timeouts, unpack(poison))
end
if #payloads > 0 then
  local pushed = redis.pcall("RPUSH", target, unpack(payloads))
  if type(pushed) == "table" then
    -- What went to the quarantine has to be reported; the next run reports this.
    if #poison > 0 then return { 0, #poison, now, math.floor(now / 1000), 0 } end
    return pushed
  end
  redis.call("ZREMRANGEBYRANK", timeouts, 0, #payloads - 1)
  -- Who moves: see the stand-by of the transfer task.
  if lastMover ~= task then redis.call("SET", mover, task, "EX", 3600) end
end
${isExact ? "if #due > 0 then forget(due) end" : ""}
for i, key in ipairs(keyed) do
  if entries[i] and entries[i]:sub(9, 24) == ids[i] then redis.call("HDEL", index, key) end
end
local head = redis.call("ZRANGE", timeouts, 0, 0, "WITHSCORES")
if #due > 0 and not head[1] then
  -- No message is left, so every element of the insertion order is dead.
  redis.call("UNLINK", order, compacted, ghosts, index)
end
return { #payloads, #poison, now, tonumber(head[2]) or false, (lastMover and lastMover ~= task) and 1 or 0 }
`,
    reply: (raw: RawReply): TransferReply => {
      const [moved, quarantined, serverTime, next, isOutrun] = asArray(raw);
      return {
        moved: asNumber(moved),
        quarantined: asNumber(quarantined),
        serverTime: asNumber(serverTime),
        next: next === null || next === undefined ? Infinity : Number(next),
        isOutrun: asNumber(isOutrun) === 1,
      };
    },
  });

export const transfer = defineTransfer("transfer", false);

/** Removes the messages from the LIST at once: for queues with `interop: "redisson"`. */
export const transferExact = defineTransfer("transfer-exact", true);
