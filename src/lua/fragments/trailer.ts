import { defineFragment } from "../fragment.ts";

/*
 * What follows the payload of a message: nothing, its business key, or fields. `trailer.ts` in `queue/message/` documents
 * the bytes, and its functions must decide in the same way. Whoever reads fields reads them by `fieldAt`.
 */

/**
 * `fieldAt(trailer, at)`: the tag of the field that begins there, and the position of its last byte; its value begins at
 * `at + 5`. Nil if the field is cut off.
 */
export const fieldAt = defineFragment({
  lua: /* lua */ `
local function fieldAt(trailer, at)
  local tag, a, b, c, d = trailer:byte(at, at + 4)
  local last = d and at + 4 + a + b * 256 + c * 65536 + d * 16777216
  if last and last <= #trailer then return tag, last end
end
`,
});

/**
 * `readTrailer(trailer)`: the business key, or nil; and the conditions, see {@link condition}: the bytes of the guard (or
 * nil), and for how many milliseconds after its deadline the message may be delivered (or nil). Nil thrice for a trailer
 * of another version, or with malformed fields.
 */
export const readTrailer = defineFragment({
  needs: [fieldAt],
  lua: /* lua */ `
local function readTrailer(trailer)
  if trailer:byte(1) ~= 255 then return trailer ~= "" and trailer or nil end
  if trailer:byte(2) ~= 1 then return nil end
  local at, size, key, guard, within = 3, #trailer, nil, nil, nil
  while at <= size do
    local tag, last = fieldAt(trailer, at)
    if not tag then return nil end
    if tag == 1 then key = key or trailer:sub(at + 5, last)
    elseif tag == 7 then guard = guard or trailer:sub(at + 5, last)
    elseif tag == 8 and last == at + 12 then within = within or struct.unpack("<I8", trailer, at + 5) end
    at = last + 1
  end
  return key ~= "" and key or nil, guard, within
end
`,
});

/** `withoutConditions(trailer)`: a trailer whose fields `readTrailer` could read, without its conditions. */
export const withoutConditions = defineFragment({
  needs: [fieldAt],
  lua: /* lua */ `
local function withoutConditions(trailer)
  local at, size, key, isBare, rest = 3, #trailer, nil, true, {}
  while at <= size do
    local tag, last = fieldAt(trailer, at)
    if tag ~= 7 and tag ~= 8 then
      if tag == 1 and not key then key = trailer:sub(at + 5, last) else isBare = false end
      rest[#rest + 1] = trailer:sub(at, last)
    end
    at = last + 1
  end
  if isBare then return key or "" end
  return trailer:sub(1, 2) .. table.concat(rest)
end
`,
});
