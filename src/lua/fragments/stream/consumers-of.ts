import { defineFragment } from "../../fragment.ts";
import { info } from "./info.ts";

/**
 * `consumersOf(group)`: a table for each consumer of the group, by the names that `XINFO CONSUMERS` has for its
 * fields. None where there is no such stream or group.
 */
export const consumersOf = defineFragment({
  keys: ["stream"],
  needs: [info],
  lua: /* lua */ `
local function consumersOf(group)
  if redis.call("EXISTS", stream) == 0 then return {} end
  local found = redis.pcall("XINFO", "CONSUMERS", stream, group)
  if found.err then
    if found.err:find("^%-?NOGROUP") then return {} end
    -- Once more, to raise the error: Redis 6.2 and 7.0 want it in different forms.
    found = redis.call("XINFO", "CONSUMERS", stream, group)
  end
  local consumers = {}
  for i, fields in ipairs(found) do consumers[i] = infoOf(fields) end
  return consumers
end
`,
});
