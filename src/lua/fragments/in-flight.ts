import { defineFragment } from "../fragment.ts";
import { streamId } from "./stream.ts";

/**
 * `inFlight(group, first, last, limit[, consumer])`: the rows that `XPENDING` replies for the entries in flight in
 * this range, of one consumer or of the whole group. Each begins with the entry's id. None if the stream or the group
 * is missing.
 */
export const inFlight = defineFragment({
  keys: ["stream"],
  lua: /* lua */ `
local function inFlight(group, first, last, limit, ...)
  local found = redis.pcall("XPENDING", stream, group, first, last, limit, ...)
  if not found.err then return found end
  if found.err:find("^%-?NOGROUP") then return {} end
  -- Call it again to raise the error: Redis 6.2 and 7.0 differ in the form that error() needs.
  return redis.call("XPENDING", stream, group, first, last, limit, ...)
end
`,
});

/**
 * `inFlightFor(group, consumer, ids, heldCount)`: a table with each of these ids that is in flight for the consumer, and
 * for how many milliseconds. It may contain other ids, too. `heldCount`: about how many entries the consumer has in
 * flight.
 *
 * One XPENDING over the whole range costs a quarter of one for each id, unless many other entries lie in the range:
 * 15 ms for two ids out of 10,000. So its reply is limited. If the reply is full, missing ids are looked up one by
 * one. The ids usually come in ascending order; whether they do shows in that none is missing.
 */
export const inFlightFor = defineFragment({
  needs: [inFlight, streamId],
  lua: /* lua */ `
local function inFlightFor(group, consumer, ids, heldCount)
  local mine = {}
  if #ids == 0 then return mine end
  local limit = math.min(math.max(heldCount, #ids), 4 * #ids) + 16
  local function look(first, last)
    local found = inFlight(group, first, last, limit, consumer)
    for i = 1, #found do mine[found[i][1]] = found[i][3] end
    for _, id in ipairs(ids) do
      if not mine[id] then return #found < limit end
    end
    return true, true
  end
  local _, areAll = look(ids[1], ids[#ids])
  if areAll or look(rangeOf(ids)) then return mine end
  for _, id in ipairs(ids) do
    local row = not mine[id] and inFlight(group, id, id, 1, consumer)[1]
    if row then mine[id] = row[3] end
  end
  return mine
end
`,
});

/**
 * `keep(group, consumer, ids)`: makes entries in flight for the consumer that were just appended, before the group
 * reads them. Redis counts no delivery of them until `handOut` does.
 * `mayKeep(group, consumer)`: raises Redis's error if that is not permitted.
 */
export const keepInFlight = defineFragment({
  keys: ["stream"],
  lua: /* lua */ `
local function mayKeep(group, consumer)
  redis.call("XCLAIM", stream, group, consumer, 0, "0-0", "JUSTID")
end
local function keep(group, consumer, ids)
  if #ids == 0 then return end
  local claim = { group, consumer, 0, unpack(ids) }
  for _, word in ipairs({ "RETRYCOUNT", 0, "FORCE", "JUSTID" }) do claim[#claim + 1] = word end
  redis.call("XCLAIM", stream, unpack(claim))
end
`,
});
