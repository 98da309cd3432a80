import { asBuffers } from "../reply.ts";
import { defineScript } from "../script.ts";

/** Returns the elements of a LIST from `position` on: up to `step`, and about `maxBytes`. */
export const listPage = defineScript({
  name: "list-page",
  keys: ["list"],
  args: ["position", "step", "maxBytes"],
  lua: /* lua */ `
local elements, bytes = {}, 0
step, maxBytes = tonumber(step), tonumber(maxBytes)
while #elements < step and bytes < maxBytes do
  -- A few at a time, since each element may be large.
  local count = math.min(10, step - #elements)
  local from = position + #elements
  local found = redis.call("LRANGE", list, from, from + count - 1)
  for _, element in ipairs(found) do
    elements[#elements + 1] = element
    bytes = bytes + #element
  end
  if #found < count then break end
end
return elements
`,
  reply: asBuffers,
});
