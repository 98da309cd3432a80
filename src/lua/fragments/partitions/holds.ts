import { defineFragment } from "../../fragment.ts";

/**
 * `holds(process, fence)`: whether the process has the lease of a partition with this fence. It may be over, as long as
 * no other has taken it.
 */
export const holds = defineFragment({
  keys: ["holder"],
  lua: /* lua */ `
local function holds(process, fence)
  local found = redis.call("HMGET", holder, "holder", "fence")
  return found[1] == process and found[2] == fence
end
`,
});
