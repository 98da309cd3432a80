import { defineFragment } from "../../fragment.ts";
import { inFlight } from "./in-flight.ts";
import { streamId } from "./stream-id.ts";

/**
 * `inFlightFor(group, consumer, ids, heldCount)`: a table with `true` for each of these ids that is in flight for the
 * consumer. It may contain other ids, too. `heldCount`: about how many entries the consumer has in flight.
 *
 * One XPENDING over the whole range costs a quarter of one for each id, unless many other entries lie in the range:
 * 15 ms for two ids out of 10,000. So its reply is limited. If the reply is full, missing ids are looked up one by
 * one.
 */
export const inFlightFor = defineFragment({
  needs: [inFlight, streamId],
  lua: /* lua */ `
local function inFlightFor(group, consumer, ids, heldCount)
  local mine = {}
  if #ids == 0 then return mine end
  local first, last = rangeOf(ids)
  local limit = math.min(math.max(heldCount, #ids), 4 * #ids) + 16
  local found = inFlight(group, first, last, limit, consumer)
  for i = 1, #found do mine[found[i][1]] = true end
  if #found < limit then return mine end
  for _, id in ipairs(ids) do
    mine[id] = mine[id] or inFlight(group, id, id, 1, consumer)[1] and true
  end
  return mine
end
`,
});
