import { defineFragment } from "../../fragment.ts";
import { tableOf } from "./table-of.ts";

/**
 * `groupsOf()`: a table for each consumer group of the stream, with the field names of `XINFO GROUPS`. None without a
 * stream.
 */
export const groupsOf = defineFragment({
  keys: ["stream"],
  needs: [tableOf],
  lua: /* lua */ `
local function groupsOf()
  local groups = {}
  if redis.call("EXISTS", stream) == 0 then return groups end
  for i, fields in ipairs(redis.call("XINFO", "GROUPS", stream)) do groups[i] = tableOf(fields) end
  return groups
end
`,
});
