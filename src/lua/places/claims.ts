import { defineFragment } from "../fragment.ts";
import { streamId } from "../fragments/stream-info.ts";
import { handedOut, inFlight } from "./in-flight.ts";

/**
 * `claimsOf(id, entry, groups)`: a table for each group that still needs an entry: `group`, and `consumer` and `isRunning` if it
 * is in flight. `groups`: what `groupsOf` returned; without any group, one claim for the entry's own.
 */
export const claims = defineFragment({
  needs: [handedOut, inFlight, streamId],
  lua: /* lua */ `
local function claimsOf(id, entry, groups)
  local claims = {}
  for _, group in ipairs(groups) do
    if not entry.g or entry.g == group.name then
      local row = group.pending > 0 and inFlight(group.name, id, id, 1)[1]
      if row then
        claims[#claims + 1] = { group = group.name, consumer = row[2], isRunning = wasHandedOut(entry, row[4]) }
      elseif compareIds(id, group["last-delivered-id"]) > 0 then
        claims[#claims + 1] = { group = group.name }
      end
    end
  end
  if #groups == 0 then claims[1] = { group = entry.g } end
  return claims
end
`,
});
