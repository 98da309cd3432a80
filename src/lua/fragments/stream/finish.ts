import { defineFragment } from "../../fragment.ts";
import { inFlight } from "./in-flight.ts";
import { info } from "./info.ts";
import { streamId } from "./stream-id.ts";

/**
 * `finish(group, ids, isOwn)`: acknowledges these entries for the group, in which they must be in flight, and
 * deletes those that no other group needs any more: the last one that finishes deletes. `isOwn[id]`: whether the
 * entry is for this group only. Some thousand at most, or Lua's stack is too small for them.
 * `mayFinish(group)`: raises an error if it is not permitted to finish anything. Behind it Redis takes every write
 * of the script, even if memory is full: it then refuses only the first, and never a removal.
 *
 * A group needs an entry until it has been given it and has acknowledged it. The group's last id tells what it
 * has been given.
 */
export const finish = defineFragment({
  keys: ["stream"],
  needs: [inFlight, info, streamId],
  lua: /* lua */ `
local function mayFinish(group)
  redis.call("XACK", stream, group, "0-0")
  redis.call("XDEL", stream, "0-0")
end
local function unneededBy(other, ids)
  local given, last = {}, other["last-delivered-id"]
  for _, id in ipairs(ids) do
    if compareIds(id, last) <= 0 then given[#given + 1] = id end
  end
  if #given == 0 then return given end
  local low, high = rangeOf(given)
  -- Entries of other consumers lie between these. Some of them cost less than an XPENDING for each id.
  local limit = 4 * #given + 16
  local found = inFlight(other.name, low, high, limit)
  local isInFlight, unneeded = {}, {}
  for i = 1, #found do isInFlight[found[i][1]] = true end
  for _, id in ipairs(given) do
    if not isInFlight[id] and (#found < limit or not inFlight(other.name, id, id, 1)[1]) then
      unneeded[#unneeded + 1] = id
    end
  end
  return unneeded
end
local function unneededBut(group, groups, ids, isOwn)
  local own, shared = {}, {}
  for _, id in ipairs(ids) do
    local those = isOwn[id] and own or shared
    those[#those + 1] = id
  end
  for _, fields in ipairs(groups) do
    local other = infoOf(fields)
    if other.name ~= group then shared = unneededBy(other, shared) end
  end
  for _, id in ipairs(shared) do own[#own + 1] = id end
  return own
end
local function finish(group, ids, isOwn)
  if #ids == 0 then return end
  local groups = redis.call("XINFO", "GROUPS", stream)
  local unneeded = ids
  if #groups > 1 then unneeded = unneededBut(group, groups, ids, isOwn) end
  -- In this order: an entry that is acknowledged and stays costs memory; the other way round a message is lost.
  redis.call("XACK", stream, group, unpack(ids))
  if #unneeded > 0 then redis.call("XDEL", stream, unpack(unneeded)) end
end
`,
});
