import { asBuffer, asNumber, asRows } from "../reply.ts";
import { defineScript } from "../script.ts";

/** A payload, and in which of the lists it was. */
export interface Popped {
  /** The number of its row, from 0 on. */
  readonly row: number;
  readonly payload: Buffer;
}

/**
 * Pops from many ready LISTs, `count` at most: from each about as many, and the rest from those that hold more.
 * If `count` is less than the number of LISTs, those that come first in the rows are served. What comes from one
 * LIST comes in its order.
 *
 * All LISTs have to be on one node: it is not for a Cluster.
 *
 * Redis rolls nothing back, so a LIST that is refused (WRONGTYPE) is passed over, and what the others gave is
 * returned. The refusal is the reply only if nothing was popped.
 *
 * It must not be sent twice: it goes through a connection that never re-sends.
 */
export const popFromMany = defineScript({
  name: "pop-from-many",
  keys: [],
  args: ["count"],
  each: ["list"],
  areRowsKeys: true,
  lua: /* lua */ `
local left, open, popped, refusal = tonumber(count), {}, {}, nil
for each row do open[#open + 1] = row end
while left > 0 and #open > 0 do
  local filled = {}
  for i, row in ipairs(open) do
    local wanted = math.ceil(left / (#open - i + 1))
    if wanted == 0 then break end
    local found = redis.pcall("LPOP", KEYS[row], wanted)
    if found and found.err then
      refusal = found
    elseif found then
      for _, payload in ipairs(found) do
        popped[#popped + 1] = row - 1
        popped[#popped + 1] = payload
      end
      left = left - #found
      if #found == wanted then filled[#filled + 1] = row end
    end
  end
  open = filled
end
if refusal and #popped == 0 then return refusal end
return popped
`,
  reply: (raw): Popped[] => asRows(raw, { row: asNumber, payload: asBuffer }),
});
