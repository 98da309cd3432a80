import { defineFragment } from "../../fragment.ts";

/** `groupNames()`: the names of the stream's consumer groups; none without a stream. */
export const groupNames = defineFragment({
  keys: ["stream"],
  lua: /* lua */ `
local function groupNames()
  local names = {}
  if redis.call("EXISTS", stream) == 0 then return names end
  for _, group in ipairs(redis.call("XINFO", "GROUPS", stream)) do
    -- The fields differ between versions of Redis.
    for i = 1, #group, 2 do
      if group[i] == "name" then names[#names + 1] = group[i + 1] end
    end
  end
  return names
end
`,
});
