import { defineFragment } from "../fragment.ts";

/**
 * Ids of entries are `ms-seq`, two decimal numbers of up to 64 bits, which are more than a Lua number holds.
 *
 * `compareIds(a, b)`: negative, 0 or positive, as `a` is below, equal to or above `b`.
 * `rangeOf(ids)`: the lowest and the highest of them.
 */
export const streamId = defineFragment({
  lua: /* lua */ `
local function compareDigits(x, y)
  if x == y then return 0 end
  if #x ~= #y then return #x - #y end
  for k = 1, #x, 15 do
    local difference = x:sub(k, k + 14) - y:sub(k, k + 14)
    if difference ~= 0 then return difference end
  end
  return 0
end
local function compareIds(a, b)
  local i, j = a:find("-", 1, true), b:find("-", 1, true)
  local difference = compareDigits(a:sub(1, i - 1), b:sub(1, j - 1))
  if difference ~= 0 then return difference end
  return compareDigits(a:sub(i + 1), b:sub(j + 1))
end
local function rangeOf(ids)
  local first, last = ids[1], ids[1]
  for i = 2, #ids do
    local id = ids[i]
    -- They mostly come in their order.
    if compareIds(id, last) > 0 then last = id
    elseif compareIds(id, first) < 0 then first = id end
  end
  return first, last
end
`,
});
