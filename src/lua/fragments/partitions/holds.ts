import { defineFragment } from "../../fragment.ts";

/**
 * `holds(process, fence)`: whether the process has the lease on this partition with this fence. A lease that is over
 * still counts until another process takes it.
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
