import { defineFragment } from "../../fragment.ts";
import { consumerName } from "./consumer-name.ts";
import { fieldsOf } from "./fields-of.ts";

/**
 * `consumersOf(group)`: a table for each consumer of the group, with the field names of `XINFO CONSUMERS`. None if
 * the stream or the group is missing.
 * `isAlive(consumer, timeout)`: whether Redis has seen such a consumer within the visibility timeout in its name;
 * `timeout` applies to a name without one.
 */
export const consumersOf = defineFragment({
  keys: ["stream"],
  needs: [consumerName, fieldsOf],
  lua: /* lua */ `
local function consumersOf(group)
  if redis.call("EXISTS", stream) == 0 then return {} end
  local found = redis.pcall("XINFO", "CONSUMERS", stream, group)
  if found.err then
    if found.err:find("^%-?NOGROUP") then return {} end
    -- Call it again to raise the error: Redis 6.2 and 7.0 differ in the form that error() needs.
    found = redis.call("XINFO", "CONSUMERS", stream, group)
  end
  local consumers = {}
  for i, fields in ipairs(found) do consumers[i] = fieldsOf(fields) end
  return consumers
end
local function isAlive(consumer, timeout)
  return consumer.idle < (timeoutIn(consumer.name) or tonumber(timeout))
end
`,
});
