import { clock } from "../fragments/clock.ts";
import { groupsOf } from "../fragments/stream/groups-of.ts";
import { asNumber } from "../reply.ts";
import { defineScript } from "../script.ts";

/**
 * Whether everything that was ready in an exclusively consumed partition is handled:
 *
 * - Nothing is ready.
 * - Nothing is in flight for the group that consumes the partition, or for any group if none has ever held it.
 * - In a plain queue, the holder has noted for the fact with this `epoch` that it holds no message, or its lease is
 *   over.
 */
export const isHandled = defineScript({
  name: "is-handled",
  keys: ["ready", "stream", "holder"],
  args: ["epoch"],
  needs: [clock, groupsOf],
  lua: /* lua */ `
if redis.call("LLEN", ready) > 0 then return 0 end
local owner, endsAt, idle, heldFor = unpack(redis.call("HMGET", holder, "holder", "until", "idle", "group"))
if redis.call("XLEN", stream) > 0 then
  local only = heldFor or ""
  local isKnown = false
  for _, group in ipairs(groupsOf()) do
    if only == "" or group.name == only then
      isKnown = true
      if group.pending > 0 then return 0 end
      local last = group["last-delivered-id"]
      local isAtEnd = last == "18446744073709551615-18446744073709551615"
      if not isAtEnd and #redis.call("XRANGE", stream, "(" .. last, "+", "COUNT", 1) > 0 then return 0 end
    end
  end
  if not isKnown then return 0 end
end
-- In a reliable queue, every message that a handler holds is in flight.
if (heldFor or "") ~= "" then return 1 end
local isOver = (tonumber(endsAt) or 0) <= math.floor(clock() / 1000)
return (not owner or isOver or idle == epoch) and 1 or 0
`,
  reply: (raw) => asNumber(raw) === 1,
});
