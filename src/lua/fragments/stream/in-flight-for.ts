import { defineFragment } from "../../fragment.ts";
import { inFlight } from "./in-flight.ts";
import { streamId } from "./stream-id.ts";

/**
 * `inFlightFor(group, consumer, ids, heldCount)`: a table that has `true` for each of these entries which is in flight for
 * the consumer. It may have others too. `heldCount`: about how many are in flight for the consumer.
 *
 * One XPENDING over all of them costs a quarter of one for each, unless many others lie between them: of two out
 * of 10,000 it costs 15 ms. So its reply is short, and may end too early: then what it lacks is looked for one by one.
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

/** A reply of a 1 or a 0 for each row. */
