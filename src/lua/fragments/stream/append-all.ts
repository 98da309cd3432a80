import { defineFragment } from "../../fragment.ts";
import { entry } from "./entry.ts";

/**
 * `appendAll(entries)`: appends entries to the stream in order, and creates the stream if it is missing. Returns how
 * many were appended, and Redis's error if it refused the next one.
 *
 * When memory is full Redis refuses only the first write of a script, and never a removal. So if the first append is
 * refused, it is tried again after a removal of nothing.
 */
export const appendAll = defineFragment({
  keys: ["stream"],
  needs: [entry],
  lua: /* lua */ `
local function appendAll(entries)
  for i, entry in ipairs(entries) do
    local added = appendEntry(entry)
    if type(added) == "table" and i == 1 then
      redis.pcall("XDEL", stream, "0-0")
      added = appendEntry(entry)
    end
    if type(added) == "table" then return i - 1, added end
  end
  return #entries
end
`,
});
