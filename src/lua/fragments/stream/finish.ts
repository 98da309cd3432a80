import { defineFragment } from "../../fragment.ts";
import { inFlight } from "./in-flight.ts";
import { fieldsOf } from "./fields-of.ts";
import { streamId } from "./stream-id.ts";

/**
 * `finish(group, ids, isOwn)`: acknowledges entries, which must be in flight for the group, and deletes those that no
 * other group still needs. So the last group that finishes an entry deletes it. `isOwn[id]`: whether the entry is for
 * this group only. Takes a few thousand ids at most: Lua's stack limits `unpack`. If Redis refuses to delete, the
 * entries are acknowledged all the same; `trim` deletes them later, or reports the refusal.
 * `mayFinish(group)`: raises Redis's error if finishing is not permitted, or reading what it needs. After it, Redis
 * accepts every write of the script even if memory is full, since it refuses only the first write of a script, and never
 * a removal.
 *
 * A group needs an entry until it has been given the entry and has acknowledged it. The group's last delivered id
 * shows what it has been given.
 */
export const finish = defineFragment({
  keys: ["stream"],
  needs: [inFlight, fieldsOf, streamId],
  lua: /* lua */ `
local function mayFinish(group)
  redis.call("XINFO", "GROUPS", stream)
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
  -- Other consumers' entries lie between these. Reading some of those costs less than an XPENDING for each id.
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
    local list = isOwn[id] and own or shared
    list[#list + 1] = id
  end
  for _, fields in ipairs(groups) do
    local other = fieldsOf(fields)
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
  -- In this order: an acknowledged entry that stays costs memory; a deleted one that is not acknowledged is a lost
  -- message.
  redis.call("XACK", stream, group, unpack(ids))
  if #unneeded > 0 then redis.pcall("XDEL", stream, unpack(unneeded)) end
end
`,
});
