import { byElements } from "../family.ts";
import { asInstant, clock } from "../fragments/clock.ts";
import { deadlineAfter } from "../fragments/deadline-after.ts";
import { packAddress } from "../fragments/message/pack-address.ts";
import { asDeadline, replied } from "../fragments/message/replied.ts";
import { asArray, type RawReply } from "../reply.ts";
import { defineScript } from "../script.ts";

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
 */
export const offer = byElements((elements) =>
  defineScript({
    name: `offer-${elements}`,
    keys: ["timeouts", "order"],
    args: ["channel"],
    each: ["member", "delay", "deadline"],
    needs: [clock, deadlineAfter, replied, ...(elements === "addresses" ? [packAddress] : [])],
    lua: /* lua */ `
local now = clock() / 1000
local reply, elements, added = { now * 1000 }, {}, {}
local first, firstDeadline = nil, math.huge
for each row do
  deadline = tonumber(deadline) or deadlineAfter(now, delay)
  if redis.call("ZADD", timeouts, "NX", deadline, member) == 1 then
    elements[#elements + 1] = ${elements === "addresses" ? "packAddress(deadline, member)" : "member"}
    added[#added + 1] = member
    if deadline < firstDeadline then first, firstDeadline = member, deadline end
  else
    deadline = replied(tonumber(redis.call("ZSCORE", timeouts, member)))
  end
  reply[#reply + 1] = deadline
end
if #elements > 0 then
  local result = redis.pcall("RPUSH", order, unpack(elements))
  local isPushed = type(result) == "number"
  if isPushed then result = redis.pcall("ZRANK", timeouts, first) end
  -- Publish for a new head only. Only a new head can be due before the timers that are armed, and a Java client that
  -- hears a later deadline would cancel its timer for the head.
  if result == 0 then result = redis.pcall("PUBLISH", channel, firstDeadline) end
  if type(result) == "table" then
    -- Refused (WRONGTYPE, an ACL). Redis rolls nothing back, so take back what was added.
    redis.call("ZREM", timeouts, unpack(added))
    if isPushed then redis.call("LTRIM", order, 0, -#elements - 1) end
    return result
  end
end
return reply
`,
    reply: (raw: RawReply): OfferReply => {
      const [serverTime, ...deadlines] = asArray(raw);
      return { serverTime: asInstant(serverTime), deadlines: deadlines.map(asDeadline) };
    },
  }),
);
