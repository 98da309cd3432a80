import { defineFragment } from "../../fragment.ts";

/**
 * `tableOf(fields)`: a table of names and values that Redis replied in turn in one list: the fields of a stream entry,
 * or a group or consumer as `XINFO` replies it. The order and number of the latter differ between versions of Redis.
 */
export const tableOf = defineFragment({
  lua: /* lua */ `
local function tableOf(fields)
  local found = {}
  for i = 1, #fields, 2 do found[fields[i]] = fields[i + 1] end
  return found
end
`,
});
