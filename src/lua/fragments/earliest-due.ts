import { defineFragment } from "../fragment.ts";

/**
 * `earliestDue()`: the earliest deadline of all delayed messages and retries, or nil if there are none.
 */
export const earliestDue = defineFragment({
  keys: ["timeouts", "retries"],
  lua: /* lua */ `
local function earliestDue()
  local earliest = nil
  for _, key in ipairs({ timeouts, retries }) do
    local due = tonumber(redis.call("ZRANGE", key, 0, 0, "WITHSCORES")[2])
    if due and (not earliest or due < earliest) then earliest = due end
  end
  return earliest
end
`,
});
