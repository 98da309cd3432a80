import { defineFragment } from "../../fragment.ts";

/**
 * `fieldsOf(list)`: a table of names and values that Redis replied in turn in one list: the fields of a stream entry,
 * or a group or consumer as `XINFO` replies it. The order and number of the latter differ between versions of Redis.
 */
export const fieldsOf = defineFragment({
  lua: /* lua */ `
local function fieldsOf(list)
  local found = {}
  for i = 1, #list, 2 do found[list[i]] = list[i + 1] end
  return found
end
`,
});
