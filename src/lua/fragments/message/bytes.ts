import { defineFragment } from "../../fragment.ts";

/**
 * Compares bytes as numbers. Lua's `<` on strings uses strcoll(3), and Redis takes the collation from its environment.
 *
 * `wholeAt(bytes, from)`: the whole number in eight big-endian bytes.
 * `compareBytes(a, i, b, j, count)`: negative, 0 or positive, as `count` bytes of `a` from `i` on sort before, equal to
 * or after those of `b` from `j` on. `count` has to be a multiple of 4.
 */
export const bytes = defineFragment({
  lua: /* lua */ `
local function wholeAt(bytes, from)
  local high, low = struct.unpack(">I4I4", bytes, from)
  return high * 4294967296 + low
end
local function compareBytes(a, i, b, j, count)
  for k = 0, count - 4, 4 do
    local x, y = struct.unpack(">I4", a, i + k), struct.unpack(">I4", b, j + k)
    if x ~= y then return x - y end
  end
  return 0
end
`,
});
