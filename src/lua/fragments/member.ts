import { defineFragment } from "../fragment.ts";
import { readTrailer } from "./trailer.ts";

/**
 * `unpackMember(member)`: the id, the payload, the business key (or nil) and the trailer (or nil) of a ZSET member, and
 * its conditions as `readTrailer` returns them; nil if its layout is unknown. `message.ts` documents the layouts, and its
 * functions must decide in the same way.
 */
export const unpackMember = defineFragment({
  needs: [readTrailer],
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
    local key, guard, within = readTrailer(trailer)
    return member:sub(2, head - 8), member:sub(head + 1, head + length), key, trailer, guard, within
  end
  return nil
end
`,
});

/** `packMember(id, payload, trailer)`: the ZSET member of a message; see `packMember` in `message.ts`. */
export const packMember = defineFragment({
  lua: /* lua */ `
local function packMember(id, payload, trailer)
  return string.char(#id) .. id .. struct.pack("<I8", #payload) .. payload .. trailer
end
`,
});
