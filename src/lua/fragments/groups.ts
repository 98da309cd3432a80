import { defineFragment } from "../fragment.ts";

/**
 * `remakeStream()`: creates the stream, which is missing, with the groups that it had; returns Redis's error if it
 * refuses one. It creates no stream if no group is known.
 *
 * Whoever deletes a stream deletes its groups. If each of them were created only when one of its processes notices, the
 * first one would finish messages, and so delete them, before the others were there.
 */
export const remakeStream = defineFragment({
  keys: ["stream", "knownGroups"],
  lua: /* lua */ `
local function remakeStream()
  local found = redis.pcall("HSCAN", knownGroups, 0, "COUNT", 1000)
  -- Of another type, or not permitted: then only the groups whose processes come are created.
  local names = found.err and {} or found[2]
  for i = 1, #names, 2 do
    local made = redis.pcall("XGROUP", "CREATE", stream, names[i], "0", "MKSTREAM")
    if made.err and not made.err:find("^%-?BUSYGROUP") then return made end
  end
end
`,
});
