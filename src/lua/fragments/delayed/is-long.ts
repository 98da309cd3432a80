import { defineFragment } from "../../fragment.ts";

/**
 * `isLong(live)`: whether the LIST is to be compacted, with so many live messages.
 */
export const isLong = defineFragment({
  keys: ["order"],
  lua: /* lua */ `
local function isLong(live)
  return redis.call("LLEN", order) > 2 * live + 2000
end
`,
});
