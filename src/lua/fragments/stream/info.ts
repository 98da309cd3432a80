import { defineFragment } from "../../fragment.ts";

/**
 * `infoOf(fields)`: a table of one group or consumer that an `XINFO` command replied, by the names of the fields. The
 * order and number of fields differ between versions of Redis.
 */
export const info = defineFragment({
  lua: /* lua */ `
local function infoOf(fields)
  local info = {}
  for i = 1, #fields, 2 do info[fields[i]] = fields[i + 1] end
  return info
end
`,
});
