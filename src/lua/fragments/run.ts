import { defineFragment } from "../fragment.ts";

/*
 * A run is the message of a tick of a schedule, and what became of it: `delayline_running` knows the newest entry of the
 * stream of each schedule that must not overlap. A run that is settled has no entry any more, so nothing has to be noted
 * when it ends.
 *
 * Its trailer begins with the field of tag 9; `occurrence.ts` in `queue/message/` documents the bytes. One comparison
 * tells every other message apart.
 */

/**
 * `noteRun(trailer, id)`: notes the entry that was appended for a message with this trailer, if it is such a run. If Redis
 * refuses, the next run may overlap.
 */
export const noteRun = defineFragment({
  keys: ["running"],
  lua: /* lua */ `
local function noteRun(trailer, id)
  if (trailer:byte(16) or 0) < 2 then return end
  local length = struct.unpack("<I4", trailer, 4)
  redis.pcall("HSET", running, trailer:sub(17, 7 + length), id)
end
`,
});

/**
 * `overlaps(trailer)`: whether the message with this trailer must not be delivered, since a run of its schedule is ready or
 * in flight, or was let through before by this script. What Redis does not say lets it through.
 */
export const overlaps = defineFragment({
  keys: ["running", "stream"],
  lua: /* lua */ `
local isLetThrough = {}
local function overlaps(trailer)
  local flags = trailer:byte(3) == 9 and trailer:byte(16) or 0
  if flags % 2 == 0 then return false end
  local length = struct.unpack("<I4", trailer, 4)
  local name = trailer:sub(17, 7 + length)
  if isLetThrough[name] then return true end
  isLetThrough[name] = true
  local id = redis.pcall("HGET", running, name)
  if type(id) ~= "string" or not id:find("^%d+%-%d+$") then return false end
  local found = redis.pcall("XRANGE", stream, id, id)
  return found[1] ~= nil
end
`,
});
