import { defineFragment } from "../../fragment.ts";

/**
 * `keyOf(trailer)`: the business key in a trailer, or nil. `trailer.ts` documents the layout, and its functions must
 * decide in the same way.
 */
export const keyOf = defineFragment({
  lua: /* lua */ `
local function keyOf(trailer)
  if trailer:byte(1) ~= 255 then return trailer ~= "" and trailer or nil end
  if trailer:byte(2) ~= 1 then return nil end
  local at, size, key = 3, #trailer, nil
  while at <= size do
    if at + 4 > size then return nil end
    local tag, length = struct.unpack("<BI4", trailer, at)
    local last = at + 4 + length
    if last > size then return nil end
    if tag == 1 and not key then key = trailer:sub(at + 5, last) end
    at = last + 1
  end
  return key ~= "" and key or nil
end
`,
});
