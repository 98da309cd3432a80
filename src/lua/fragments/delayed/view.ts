import { defineFragment } from "../../fragment.ts";

/**
 * `view(from, to)`: the elements at positions `from` to `to` (from 0, inclusive) of the insertion order, which is the
 * compacted list followed by the LIST.
 */
export const view = defineFragment({
  keys: ["order", "compacted"],
  lua: /* lua */ `
local front = redis.call("LLEN", compacted)
local function view(from, to)
  local elements = {}
  if to < from then return elements end
  if from < front then elements = redis.call("LRANGE", compacted, from, to) end
  if to >= front then
    for _, element in ipairs(redis.call("LRANGE", order, math.max(from - front, 0), to - front)) do
      elements[#elements + 1] = element
    end
  end
  return elements
end
`,
});
