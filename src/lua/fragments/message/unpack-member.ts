import { defineFragment } from "../../fragment.ts";
import { keyOf } from "./key-of.ts";

/**
 * `unpackMember(member)`: the id, the payload, the business key (or nil) and the trailer (or nil) of a ZSET member; nil
 * if its layout is unknown. `message.ts` documents the layouts, and its functions must decide in the same way.
 */
export const unpackMember = defineFragment({
  needs: [keyOf],
  lua: /* lua */ `
local function unpackMember(member)
  local size = #member
  if size < 9 then return nil end
  local head = 9 + member:byte(1)
  local length = size >= head and struct.unpack("<I8", member, head - 7) or math.huge
  if head + length == size then return member:sub(2, head - 8), member:sub(head + 1) end
  -- Redisson before 3.21.1: an 8-byte random number, the length, the payload.
  if size >= 16 and struct.unpack("<I8", member, 9) == size - 16 then
    return member:sub(1, 8), member:sub(17)
  end
  if head + length < size then
    local trailer = member:sub(head + length + 1)
    return member:sub(2, head - 8), member:sub(head + 1, head + length), keyOf(trailer), trailer
  end
  return nil
end
`,
});
