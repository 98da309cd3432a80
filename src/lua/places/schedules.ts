import { defineFragment } from "../fragment.ts";

/**
 * `scheduleNames()`: the names of all schedules that have a record, which the HASH holds beside the revisions of sets
 * (behind a byte 0). Reads all records, so it is for a queue of which Redis has lost when to plan them.
 */
export const scheduleNames = defineFragment({
  keys: ["schedules"],
  lua: /* lua */ `
local function scheduleNames()
  local names, isThere, cursor = {}, {}, "0"
  repeat
    local page = redis.call("HSCAN", schedules, cursor, "COUNT", 1000)
    for i = 1, #page[2], 2 do
      local name = page[2][i]
      if name:byte(1) ~= 0 and not isThere[name] then names[#names + 1], isThere[name] = name, true end
    end
    cursor = page[1]
  until cursor == "0"
  return names
end
`,
});
