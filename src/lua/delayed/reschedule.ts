import { byElements, type Elements } from "../family.ts";
import { packAddress } from "../fragments/message/pack-address.ts";
import { clock } from "../fragments/clock.ts";
import { deadlineAfter } from "../fragments/deadline-after.ts";
import { delayedWith } from "../fragments/delayed/delayed-with.ts";
import { locate } from "../fragments/delayed/locate.ts";
import { asDeadline, replied } from "../fragments/message/replied.ts";
import { unpackMember } from "../fragments/message/unpack-member.ts";
import { asBuffer, asRow, orNothing } from "../reply.ts";
import { defineScript } from "../script.ts";

/**
 * Removes the older of a member's two elements. Where there was none in the LIST, that was the new one:
 * then it is elsewhere, or nowhere.
 */
const removeOlder = /* lua */ `
redis.call("LREM", order, 1, member)
if redis.call("LINDEX", order, -1) ~= member then
  redis.call("RPUSH", order, member)
  redis.call("LREM", compacted, 1, member)
end`;

/**
 * Gives a delayed message a new deadline: its id and payload stay, its address changes, and so it goes
 * to the end of the insertion order. If the deadline is the same to the millisecond, nothing changes.
 *
 * It is due in `delay` milliseconds or at `deadline`; the other one is empty. If both are, it is due now,
 * or stays due if it was: among those it keeps its place.
 *
 * Returns its deadline and member, or nil if it is gone.
 */
const defineReschedule = (name: string, resolve: "locate" | "delayedWith", elements: Elements) =>
  defineScript({
    name: `reschedule-by-${name}-${elements}`,
    keys: ["timeouts", "order", "compacted", "businessKeys"],
    args: ["channel", "wanted", "delay", "deadline"],
    needs: [
      clock,
      deadlineAfter,
      packAddress,
      replied,
      unpackMember,
      { locate, delayedWith }[resolve],
    ],
    lua: /* lua */ `
local member, oldDeadline = ${resolve}(wanted)
if not member then return false end
local id, _, key = unpackMember(member)
-- Nobody can read it, and so it is nobody's message.
if not id then return false end
local now = clock() / 1000
local deadline = tonumber(deadline)
if not deadline then
  deadline = delay ~= "" and deadlineAfter(now, delay) or math.min(oldDeadline, math.floor(now))
end
-- Its address stays, so there is nothing to change. A second element would list it twice.
if deadline == oldDeadline then return { replied(deadline), member } end
local entry = key and redis.call("HGET", businessKeys, key)
local isIndexed = entry and entry:sub(9, 24) == id
-- What may be refused comes first: whether the ZSET may be written, the index, the insertion order.
redis.call("ZADD", timeouts, "XX", deadline, "delayline: no such member")
if isIndexed then redis.call("HSET", businessKeys, key, packAddress(deadline, member) .. entry:sub(25)) end
local element = ${elements === "members" ? "member" : "#id == 16 and packAddress(deadline, member) or member"}
local pushed = redis.pcall("RPUSH", order, element)
if type(pushed) == "table" then
  if isIndexed then redis.call("HSET", businessKeys, key, entry) end
  return pushed
end
${elements === "members" ? removeOlder : ""}
redis.call("ZADD", timeouts, "XX", deadline, member)
if redis.call("ZRANGE", timeouts, 0, 0)[1] == member then redis.call("PUBLISH", channel, deadline) end
return { replied(deadline), member }
`,
    reply: orNothing((raw) => asRow(raw, { deadline: asDeadline, member: asBuffer })),
  });

/** By its address. */
export const rescheduleById = byElements((elements) => defineReschedule("id", "locate", elements));

/** By its business key. */
export const rescheduleByKey = byElements((elements) =>
  defineReschedule("key", "delayedWith", elements),
);
