import { defineFragment } from "../../fragment.ts";

/**
 * Ids of entries are `ms-seq`: two decimal numbers of up to 64 bits, more than a Lua number holds.
 *
 * `compareIds(a, b)`: negative, 0 or positive, as `a` is below, equal to or above `b`.
 * `rangeOf(ids)`: the lowest and the highest id.
 */
export const streamId = defineFragment({
  lua: /* lua */ `
local function compareDigits(x, y)
  if x == y then return 0 end
  if #x <= 15 and #y <= 15 then return x - y end
  if #x ~= #y then return #x - #y end
  for k = 1, #x, 15 do
    local difference = x:sub(k, k + 14) - y:sub(k, k + 14)
    if difference ~= 0 then return difference end
  end
  return 0
end
local function compareParts(ms, seq, otherMs, otherSeq)
  -- Neighbours usually share the millisecond, and Lua compares equal strings by their address.
  if ms == otherMs then return compareDigits(seq, otherSeq) end
  return compareDigits(ms, otherMs)
end
local function partsOf(id)
  return id:match("^(%d+)%-(%d+)$")
end
local function compareIds(a, b)
  local ms, seq = partsOf(a)
  return compareParts(ms, seq, partsOf(b))
end
local function rangeOf(ids)
  local first, last = ids[1], ids[1]
  local firstMs, firstSeq = partsOf(first)
  local lastMs, lastSeq = firstMs, firstSeq
  for i = 2, #ids do
    local ms, seq = partsOf(ids[i])
    -- Ids usually come in ascending order, so try the highest first.
    if compareParts(ms, seq, lastMs, lastSeq) > 0 then
      last, lastMs, lastSeq = ids[i], ms, seq
    elseif compareParts(ms, seq, firstMs, firstSeq) < 0 then
      first, firstMs, firstSeq = ids[i], ms, seq
    end
  end
  return first, last
end
`,
});
