import { IN_PART } from "../../failure.ts";
import { defineFragment } from "../fragment.ts";
import { packAddress } from "../fragments/address.ts";
import { asInstant, clock } from "../fragments/clock.ts";
import { asDeadline, deadlineAfter, replied } from "../fragments/deadline.ts";
import { asArray, type RawReply } from "../reply.ts";
import { defineScript } from "../script.ts";

/**
 * `refuseOffer(refusal, members)`: the reply to an offer of these members that Redis has refused. If one of them is
 * delayed nevertheless, or Redis refuses to say, the error says that a part may be done: an earlier copy of the offer has
 * stored it.
 */
export const refuseOffer = defineFragment({
  keys: ["timeouts"],
  lua: /* lua */ `
local function refuseOffer(refusal, members)
  for _, member in ipairs(members) do
    local score = redis.pcall("ZSCORE", timeouts, member)
    local isUnknown = type(score) == "table" and not score.err:find("WRONGTYPE", 1, true)
    if type(score) == "string" or isUnknown then return { err = refusal.err .. "${IN_PART}" } end
  end
  return refusal
end
`,
});

export interface OfferReply {
  /** The server's time (epoch ms), to the microsecond. */
  readonly serverTime: number;
  /** The deadlines of the messages (epoch ms), in the order of the rows. */
  readonly deadlines: readonly number[];
}

/**
 * Puts messages into the timeouts ZSET, and at the end of the insertion order.
 *
 * A message is due in `delay` milliseconds or at `deadline`; the other column is empty.
 *
 * A message that is sent a second time while it is still delayed is not stored again; its first deadline is returned.
 *
 * No rollback: the insertion order comes first. Until a message is in the ZSET, its element points to nothing. If ZADD
 * is refused, it is so for the first message, and none is stored. If only the wake-up is refused, the messages are
 * taken back; if Redis refuses that as well, the error says so (`refuseOffer`).
 */
export const offer = defineScript({
  name: "offer",
  keys: ["timeouts", "order"],
  args: ["channel", "elementsAre"],
  each: ["member", "delay", "deadline"],
  needs: [clock, deadlineAfter, packAddress, refuseOffer, replied],
  lua: /* lua */ `
local now = clock() / 1000
local reply, members, elements = { now * 1000 }, {}, {}
for each row do
  deadline = tonumber(deadline) or deadlineAfter(now, delay)
  members[#members + 1] = member
  elements[#elements + 1] = elementsAre == "members" and member or packAddress(deadline, member)
  reply[#reply + 1] = deadline
end
local done = redis.pcall("RPUSH", order, unpack(elements))
if type(done) == "table" then return refuseOffer(done, members) end
local added, fresh, known = {}, {}, {}
local first, firstDeadline = nil, math.huge
for i, member in ipairs(members) do
  local deadline = reply[i + 1]
  done = redis.pcall("ZADD", timeouts, "NX", deadline, member)
  if type(done) == "table" then
    redis.pcall("LTRIM", order, 0, -#elements - 1)
    return refuseOffer(done, members)
  end
  if done == 1 then
    added[#added + 1] = member
    fresh[#fresh + 1] = elements[i]
    if deadline < firstDeadline then first, firstDeadline = member, deadline end
  else
    known[#known + 1] = i
  end
end
-- Messages that were sent before have their elements already.
if #known > 0 and not redis.pcall("LTRIM", order, 0, -#elements - 1).err and #fresh > 0 then
  redis.call("RPUSH", order, unpack(fresh))
end
for _, i in ipairs(known) do
  local score = redis.pcall("ZSCORE", timeouts, members[i])
  if type(score) == "table" then return refuseOffer(score, members) end
  reply[i + 1] = replied(tonumber(score))
end
if first then
  done = redis.pcall("ZRANK", timeouts, first)
  -- Publish for a new head only. Only a new head can be due before the timers that are armed, and a Java client that
  -- hears a later deadline would cancel its timer for the head.
  if done == 0 then done = redis.pcall("PUBLISH", channel, firstDeadline) end
  if type(done) == "table" then
    if type(redis.pcall("ZREM", timeouts, unpack(added))) == "number" then
      redis.pcall("LTRIM", order, 0, -#fresh - 1)
    end
    return refuseOffer(done, members)
  end
end
return reply
`,
  reply: (raw: RawReply): OfferReply => {
    const [serverTime, ...deadlines] = asArray(raw);
    return { serverTime: asInstant(serverTime), deadlines: deadlines.map(asDeadline) };
  },
});
