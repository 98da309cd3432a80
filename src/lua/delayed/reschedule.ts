import { packAddress } from "../fragments/address.ts";
import { clock } from "../fragments/clock.ts";
import { deadlineAfter, replied } from "../fragments/deadline.ts";
import { earliestDue } from "../places/due.ts";
import { asMember, resolve } from "../places/key-index.ts";
import { behindAddress, pointsTo } from "../fragments/key-entry.ts";
import { unpackMember } from "../fragments/member.ts";
import { writes } from "../fragments/writes.ts";
import { asRow, orNothing } from "../reply.ts";
import { defineScript } from "../script.ts";
import { DUE } from "./get.ts";
import { may } from "../fragments/may.ts";
import { wakeUp } from "../fragments/wake-up.ts";
import { leaveRoom } from "../places/room.ts";

/**
 * Gives a delayed message, named by its address or its business key, a new deadline. Its id and payload stay; its
 * address changes, and it goes to the end of the insertion order. If the deadline stays the same to the millisecond,
 * nothing changes. One that waits for its turn leaves the waiting room; to be due now changes nothing for it. A retrying message becomes due at another time for every group that it waits for, and keeps its
 * address.
 *
 * The message is due in `delay` milliseconds or at `deadline`; the other argument is empty. If both are empty, it is
 * due now; a message that is already due keeps its deadline, and so its position.
 *
 * Returns the message as it is then; of a retrying one, when it is due for the first of its groups. Returns nil if it is
 * neither.
 */
export const reschedule = defineScript({
  name: "reschedule",
  keys: ["timeouts", "order", "compacted", "businessKeys", "retries"],
  args: ["channel", "id", "key", "delay", "deadline", "elementsAre"],
  needs: [
    clock,
    deadlineAfter,
    may,
    packAddress,
    pointsTo,
    replied,
    resolve,
    unpackMember,
    wakeUp,
    writes,
  ],
  rarely: [asMember, behindAddress, earliestDue, leaveRoom],
  lua: /* lua */ `
local function rescheduleRetries(all, now)
  local earliest = rare().earliestDue()
  local due = tonumber(deadline) or delay ~= "" and deadlineAfter(now, delay)
  local first, changes = math.huge, {}
  for _, one in ipairs(all) do
    local own = due or math.min(one.due, math.floor(now))
    first = math.min(first, own)
    -- One that waits for its turn is due already. If it gets another time, its turn means nothing.
    if due or not one.waits then changes[#changes + 1], changes[#changes + 2] = own, one.name end
  end
  if #changes == 0 then return { "retrying", replied(first), rare().asMember(all[1]), all[1].a } end
  may("ZADD", retries)
  local refusal = wakeUp(first, earliest)
  if refusal then return refusal end
  redis.call("ZADD", retries, "XX", unpack(changes))
  return { "retrying", replied(first), rare().asMember(all[1]), all[1].a }
end
local place, member, oldDeadline, all = resolve(id, key)
if place == "retrying" then return rescheduleRetries(all, clock() / 1000) end
if place ~= "delayed" and place ~= "waiting" then return false end
local waits = place == "waiting"
local ownId, _, ownKey = unpackMember(member)
-- A member of an unknown layout is not a message.
if not ownId then return false end
local now = clock() / 1000
local deadline = tonumber(deadline)
if not deadline then
  deadline = delay ~= "" and deadlineAfter(now, delay) or math.min(oldDeadline, math.floor(now))
end
-- The address stays the same, so there is nothing to do. A second element would list the message twice.
if deadline == oldDeadline then return { "delayed", replied(deadline), member, false } end
local entry = ownKey and redis.call("HGET", businessKeys, ownKey)
local isIndexed = pointsTo(entry, ownId)
-- A message that stays the head and becomes later needs no wake-up: the timers are armed for a time before it.
local isHead = (waits or deadline < oldDeadline) and redis.call("ZCOUNT", timeouts, "-inf", deadline) == 0
-- What may be refused comes first: a probe of the ZSET, the wake-up, then the index and the insertion order.
attempt(may, "ZADD", timeouts)
if waits then attempt(rare().mayLeaveRoom) end
if elementsAre == "members" then
  try("LINDEX", order, -1)
  -- The compacted list is nearly always missing.
  try("LREM", compacted, 1, "delayline: nothing")
end
if isHead and not refused() then wrote(nil, wakeUp(deadline)) end
if isIndexed then
  local moved = packAddress(deadline, member) .. rare().behindAddress(entry)
  write(function() redis.pcall("HSET", businessKeys, ownKey, entry) end, "HSET", businessKeys, ownKey, moved)
end
local isShort = elementsAre ~= "members" and #ownId == 16
local element = isShort and packAddress(deadline, member) or member
try("RPUSH", order, element)
if refused() then return done() end
if elementsAre == "members" then
  -- Removes the older one of two elements. If LREM has removed the new one, the older one was not in the LIST: it is in
  -- the compacted list, or nowhere.
  redis.call("LREM", order, 1, member)
  if redis.call("LINDEX", order, -1) ~= member then
    redis.call("RPUSH", order, member)
    redis.call("LREM", compacted, 1, member)
  end
end
redis.call("ZADD", timeouts, waits and "NX" or "XX", deadline, member)
if waits then rare().leaveRoom({ member }) end
return { "delayed", replied(deadline), member, false }
`,
  reply: orNothing((raw) => asRow(raw, DUE)),
});
