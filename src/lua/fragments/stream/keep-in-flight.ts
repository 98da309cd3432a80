import { defineFragment } from "../../fragment.ts";

/**
 * `keep(group, consumer, ids)`: makes entries in flight for the consumer that were just appended, before the group
 * reads them. Redis counts no delivery of them until `handOut` does.
 * `mayKeep(group, consumer)`: raises Redis's error if that is not permitted.
 */
export const keepInFlight = defineFragment({
  keys: ["stream"],
  lua: /* lua */ `
local function mayKeep(group, consumer)
  redis.call("XCLAIM", stream, group, consumer, 0, "0-0", "JUSTID")
end
local function keep(group, consumer, ids)
  if #ids == 0 then return end
  local claim = { group, consumer, 0, unpack(ids) }
  for _, word in ipairs({ "RETRYCOUNT", 0, "FORCE", "JUSTID" }) do claim[#claim + 1] = word end
  redis.call("XCLAIM", stream, unpack(claim))
end
`,
});
