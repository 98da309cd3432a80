import { defineFragment } from "../../fragment.ts";
import { fieldsOf } from "./fields-of.ts";

/**
 * `groupsOf()`: a table for each consumer group of the stream, with the field names of `XINFO GROUPS`. None without a
 * stream.
 */
export const groupsOf = defineFragment({
  keys: ["stream"],
  needs: [fieldsOf],
  lua: /* lua */ `
local function groupsOf()
  local groups = {}
  if redis.call("EXISTS", stream) == 0 then return groups end
  for i, fields in ipairs(redis.call("XINFO", "GROUPS", stream)) do groups[i] = fieldsOf(fields) end
  return groups
end
`,
});
