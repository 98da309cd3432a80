import { defineFragment } from "../../fragment.ts";

/**
 * `withoutFailures(trailer)`: the trailer as it was before the message has failed; see `failure.ts`. A trailer of another
 * version, or whose fields do not end where it ends, is returned as it is.
 */
export const withoutFailures = defineFragment({
  lua: /* lua */ `
local function withoutFailures(trailer)
  if trailer:byte(1) ~= 255 or trailer:byte(2) ~= 1 then return trailer end
  local kept, tags, failed, at, size = {}, {}, false, 3, #trailer
  while at <= size do
    if at + 4 > size then return trailer end
    local tag, length = struct.unpack("<BI4", trailer, at)
    local last = at + 4 + length
    if last > size then return trailer end
    if tag == 4 then
      failed = true
    else
      kept[#kept + 1] = trailer:sub(at, last)
      tags[#tags + 1] = tag
    end
    at = last + 1
  end
  if not failed then return trailer end
  if #kept == 0 then return "" end
  -- It was a bare key.
  if #kept == 1 and tags[1] == 1 then return kept[1]:sub(6) end
  return "\\255\\1" .. table.concat(kept)
end
`,
});
