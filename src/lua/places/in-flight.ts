import { defineFragment } from "../fragment.ts";

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
 * for how many milliseconds. It may contain other ids, too. Also whether all of them are in flight for it, and in
 * ascending order, each once. `heldCount`: about how many entries the consumer has in flight.
 *
 * A row of a longer XPENDING costs half of an XPENDING for one id. The ids are usually in ascending order, with few other
 * entries between them, so the first look is at their range. If it misses some, and they are most of what is in flight, a
 * second look is at everything. Otherwise, or if there is more than expected, the missing ones are looked up one by one.
 */
export const inFlightFor = defineFragment({
  needs: [inFlight],
  lua: /* lua */ `
local function inFlightFor(group, consumer, ids, heldCount)
  local mine, count = {}, #ids
  if count == 0 then return mine, true end
  local next = 1
  local function look(first, last, limit)
    local found = inFlight(group, first, last, limit, consumer)
    for i = 1, #found do
      local id = found[i][1]
      mine[id] = found[i][3]
      -- The rows are in ascending order.
      if id == ids[next] then next = next + 1 end
    end
    return #found < limit
  end
  look(ids[1], ids[count], count + 16)
  if next > count then return mine, true end
  local expected = math.max(heldCount, count)
  if expected <= 2 * count and look("-", "+", expected + 16) then return mine end
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

/**
 * The deliveries that `handOut` makes Redis count. A group that has not reached an entry yet that a script has kept in
 * flight reads it once more, and Redis counts that read as a delivery. It is none: so one that is handed out counts more.
 */
export const HANDED_OUT = 2;

/**
 * `wasHandedOut(entry, deliveries)`: whether the consumer for which an entry is in flight may have handed it out, given how
 * many deliveries Redis has counted. A read hands out, unless the entry is held back, or has a rank: then a script has
 * kept it in flight, and only `handOut` does.
 */
export const handedOut = defineFragment({
  lua: /* lua */ `
local function wasHandedOut(entry, deliveries)
  return deliveries >= ((entry.u or entry.o) and ${HANDED_OUT} or 1)
end
`,
});
