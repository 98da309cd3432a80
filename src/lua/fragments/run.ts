import { defineFragment } from "../fragment.ts";

/*
 * A run is the message of a tick of a schedule, and what became of it: `delayline_running` has the entries of the stream
 * of each schedule that must not overlap, parted by spaces, the newest last. A run that is settled has no entry any more,
 * so nothing has to be noted when it ends: whoever notes the next one forgets it.
 *
 * Its trailer begins with the field of tag 9; `occurrence.ts` in `queue/message/` documents the bytes. One comparison
 * tells every other message apart.
 */

/** So many runs of a schedule are remembered. Of more, it is the last but one that is forgotten. */
const MOST = 16;

/**
 * `nameIn(trailer)`: the schedule of the run with this trailer.
 * `runIn(trailer)`: the same of any trailer that begins with 255; nil if its message is no run.
 * `runsOf(name)`: the entries of the schedule that are in the stream, so ready or in flight. A script asks Redis once for
 * each schedule; what Redis does not say counts as gone.
 * `noteRun(trailer, id)`: notes the entry that was appended for a message with this trailer, if it is such a run. If Redis
 * refuses, the next run may overlap.
 */
export const noteRun = defineFragment({
  keys: ["running", "stream"],
  lua: /* lua */ `
local runs = {}
local function nameIn(trailer)
  return trailer:sub(17, 7 + struct.unpack("<I4", trailer, 4))
end
local function runIn(trailer)
  return trailer:byte(3) == 9 and #trailer > 16 and nameIn(trailer) or nil
end
local function runsOf(name)
  if runs[name] then return runs[name] end
  local alive, noted = {}, redis.pcall("HGET", running, name)
  for id in (type(noted) == "string" and noted:sub(1, ${64 * MOST}) or ""):gmatch("%d+%-%d+") do
    local found = #alive < ${MOST} and redis.pcall("XRANGE", stream, id, id) or {}
    if found[1] then alive[#alive + 1] = id end
  end
  runs[name] = alive
  return alive
end
local function noteRun(trailer, id)
  if (trailer:byte(16) or 0) % 4 < 2 then return end
  local name = nameIn(trailer)
  local alive = runsOf(name)
  alive[math.min(#alive + 1, ${MOST})] = id
  redis.pcall("HSET", running, name, table.concat(alive, " "))
end
`,
});

/**
 * `overlaps(trailer)`: whether the message with this trailer must not be delivered, since a run of its schedule is ready or
 * in flight, or was let through before by this script.
 */
export const overlaps = defineFragment({
  keys: ["running", "stream"],
  needs: [noteRun],
  lua: /* lua */ `
local isLetThrough = {}
local function overlaps(trailer)
  local flags = trailer:byte(3) == 9 and trailer:byte(16) or 0
  if flags % 2 == 0 then return false end
  local name = nameIn(trailer)
  if isLetThrough[name] then return true end
  isLetThrough[name] = true
  return #runsOf(name) > 0
end
`,
});
