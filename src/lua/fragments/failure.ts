import { defineFragment } from "../fragment.ts";

/** How many failed attempts a message carries; older ones are dropped. */
const MAX_FAILURES = 10;

/** Bytes of a failure's reason that are kept. */
const MAX_REASON_BYTES = 200;

/**
 * What a message carries of its failed attempts, as fields of its trailer; see `trailer.ts` and `failed-attempt.ts`.
 *
 * `countFailure(entry, reason, now)`: counts the delivery that has failed, and puts the failure into the entry's trailer.
 * `now` is what `clock()` returned. A bare key becomes a field. Only the last ten failures stay; what else is in
 * the trailer stays as it is. A trailer of another version, or whose fields do not end where it ends, is left alone.
 */
export const failure = defineFragment({
  lua: /* lua */ `
local function packFailure(at, attempt, reason)
  local last = math.min(#reason, ${MAX_REASON_BYTES})
  -- Not in the middle of a character: all of its bytes but the first are 128 to 191.
  for _ = 1, 3 do
    local behind = reason:byte(last + 1)
    if not behind or behind < 128 or behind > 191 then break end
    last = last - 1
  end
  return struct.pack("<BI4I8I4", 4, 12 + last, at, attempt) .. reason:sub(1, last)
end
local function withoutOldest(trailer)
  local firsts, behinds, at, size = {}, {}, 3, #trailer
  while at <= size do
    if at + 4 > size then return nil end
    local tag, length = struct.unpack("<BI4", trailer, at)
    local behind = at + 5 + length
    if behind > size + 1 then return nil end
    if tag == 4 then
      firsts[#firsts + 1] = at
      behinds[#behinds + 1] = behind
    end
    at = behind
  end
  if #firsts < ${MAX_FAILURES} then return trailer end
  local kept, from = {}, 1
  for i = 1, #firsts - ${MAX_FAILURES - 1} do
    kept[i] = trailer:sub(from, firsts[i] - 1)
    from = behinds[i]
  end
  kept[#kept + 1] = trailer:sub(from)
  return table.concat(kept)
end
local function countFailure(entry, reason, now)
  entry.n = entry.n + 1
  local trailer = entry.t or ""
  if trailer:byte(1) ~= 255 then
    trailer = "\\255\\1" .. (trailer ~= "" and struct.pack("<BI4", 1, #trailer) .. trailer or "")
  else
    trailer = trailer:byte(2) == 1 and withoutOldest(trailer)
  end
  if trailer then entry.t = trailer .. packFailure(math.floor(now / 1000), entry.n, reason) end
end
`,
});
