import { asBuffer, asNumber, asRows } from "../reply.ts";
import { defineScript } from "../script.ts";

/** A payload, and the LIST that it was popped from. */
export interface Popped {
  /** The index of the LIST among the rows. */
  readonly row: number;
  readonly payload: Buffer;
}

/**
 * Pops up to `count` payloads from several ready LISTs: about as many from each, and the rest from those that hold
 * more. If `count` is less than the number of LISTs, the first rows are served. Payloads of one LIST keep their order.
 *
 * All LISTs have to be on one node, so the script is not for a Cluster.
 *
 * Redis rolls nothing back, so a LIST that Redis refuses to pop from (WRONGTYPE) is skipped, and the payloads of the
 * others are returned. The refusal is the reply only if nothing was popped.
 *
 * Must not be sent twice: use the connection that never resends.
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
