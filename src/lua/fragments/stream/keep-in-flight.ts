import { defineFragment } from "../../fragment.ts";

/**
 * `keep(group, consumer, ids)`: makes entries in flight for the consumer that were just appended, before the group
 * reads them.
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
  ids[#ids + 1] = "FORCE"
  ids[#ids + 1] = "JUSTID"
  redis.call("XCLAIM", stream, group, consumer, 0, unpack(ids))
  ids[#ids], ids[#ids - 1] = nil, nil
end
`,
});
