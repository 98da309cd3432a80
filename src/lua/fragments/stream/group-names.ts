import { defineFragment } from "../../fragment.ts";
import { groupsOf } from "./groups-of.ts";

/** `groupNames()`: the names of the stream's consumer groups; none without a stream. */
export const groupNames = defineFragment({
  keys: ["stream"],
  needs: [groupsOf],
  lua: /* lua */ `
local function groupNames()
  local names = {}
  for i, group in ipairs(groupsOf()) do names[i] = group.name end
  return names
end
`,
});
