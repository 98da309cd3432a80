import { inFlightFor } from "../fragments/stream/in-flight-for.ts";
import { asFlags } from "../reply.ts";
import { defineScript } from "../script.ts";

/**
 * Renews the leases of entries; returns for each whether it is in flight for this consumer.
 *
 * It counts no delivery. From Redis 7.0 on, an entry whose data are gone is removed, and returns false.
 */
export const extend = defineScript({
  name: "extend",
  keys: ["stream"],
  args: ["group", "consumer"],
  each: ["entry"],
  needs: [inFlightFor],
  lua: /* lua */ `
local ids, own = {}, {}
for each row do ids[#ids + 1] = entry end
local mine = inFlightFor(group, consumer, ids, #ids)
for _, id in ipairs(ids) do
  if mine[id] then own[#own + 1] = id end
end
local isClaimed, extended = {}, {}
if #own > 0 then
  local claim = { group, consumer, 0, unpack(own) }
  claim[#claim + 1] = "JUSTID"
  for _, id in ipairs(redis.call("XCLAIM", stream, unpack(claim))) do isClaimed[id] = true end
end
for i, id in ipairs(ids) do extended[i] = isClaimed[id] and 1 or 0 end
return extended
`,
  reply: asFlags,
});
