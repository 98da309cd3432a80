import { defineFragment } from "../../fragment.ts";

/**
 * `infoOf(fields)`: what an `XINFO` replies about one group or consumer, by the names of the fields. Their order
 * and number differ between versions of Redis.
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
