import { defineFragment } from "../fragment.ts";
import { readEntry } from "./stream.ts";
import { inFlight, inFlightFor } from "./in-flight.ts";
import { fieldsOf, streamId } from "../fragments/stream-info.ts";
import { may } from "../fragments/may.ts";

/** How many entries are worth the two commands more that trimming takes. */
const WORTH_TRIMMING = 3;

/**
 * `mayFinish(group)`: raises Redis's error if finishing is not permitted, or reading what it needs. After it, Redis
 * accepts every write of the script even if memory is full, since it refuses only the first write of a script, and never
 * a removal.
 */
export const mayFinish = defineFragment({
  keys: ["stream"],
  needs: [may],
  lua: /* lua */ `
local function mayFinish(group)
  redis.call("XINFO", "GROUPS", stream)
  redis.call("XACK", stream, group, "0-0")
  may("XDEL", stream)
end
`,
});

/**
 * `unneededBut(group, groups, ids, isOwn)`: those of the ids that no group needs but this one. `groups` is what Redis
 * tells of all groups.
 */
export const unneededBut = defineFragment({
  needs: [fieldsOf, inFlight, streamId],
  lua: /* lua */ `
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
`,
});

/** `trimmed(group, only, ids, areAscending)`: see there. `only` is what Redis tells of the only group. */
const trimmed = defineFragment({
  keys: ["stream"],
  needs: [fieldsOf, inFlight, streamId],
  lua: /* lua */ `
-- Those of the ids that are not below the lowest one needed.
local function notBelow(lowest, ids, areAscending)
  if areAscending then
    local from, behind = 1, #ids + 1
    while from < behind do
      local middle = math.floor((from + behind) / 2)
      if compareIds(ids[middle], lowest) < 0 then from = middle + 1 else behind = middle end
    end
    return { unpack(ids, from) }
  end
  local ms, seq = partsOf(lowest)
  local left = {}
  for _, id in ipairs(ids) do
    local ownMs, ownSeq = partsOf(id)
    if compareParts(ownMs, ownSeq, ms, seq) >= 0 then left[#left + 1] = id end
  end
  return left
end
-- Deletes what lies below all that the only group still needs, and returns those of the ids that do not: XDEL searches
-- for each entry, and XTRIM drops whole nodes of the stream.
local function trimmed(group, only, ids, areAscending)
  local last = fieldsOf(only)["last-delivered-id"]
  local needed = inFlight(group, "-", "+", 1)[1]
  -- A script may have kept an entry in flight that the group has not been given yet.
  local lowest = needed and compareIds(needed[1], last) < 0 and needed[1] or last
  local left = notBelow(lowest, ids, areAscending)
  if #left == #ids then return ids end
  local gone = redis.pcall("XTRIM", stream, "MINID", lowest)
  return type(gone) == "number" and left or ids
end
`,
});

/**
 * `finish(group, ids, isOwn[, areAscending])`: acknowledges entries, which must be in flight for the group, and deletes
 * those that no other group still needs. So the last group that finishes an entry deletes it. `isOwn[id]`: whether the
 * entry is for this group only. `areAscending`: whether the ids are known to be in ascending order, which saves
 * comparing each. Takes a few thousand ids at most: Lua's stack limits `unpack`. If Redis refuses to delete, the entries
 * are acknowledged all the same; `trim` deletes them later, or reports the refusal.
 *
 * A group needs an entry until it has been given the entry and has acknowledged it. The group's last delivered id
 * shows what it has been given.
 */
export const finish = defineFragment({
  keys: ["stream"],
  rarely: [trimmed, unneededBut],
  lua: /* lua */ `
local function finish(group, ids, isOwn, areAscending)
  if #ids == 0 then return end
  local groups = redis.call("XINFO", "GROUPS", stream)
  local unneeded = ids
  if #groups > 1 then unneeded = rare().unneededBut(group, groups, ids, isOwn) end
  -- In this order: an acknowledged entry that stays costs memory; a deleted one that is not acknowledged is a lost
  -- message.
  redis.call("XACK", stream, group, unpack(ids))
  if #groups == 1 and #ids >= ${WORTH_TRIMMING} then
    unneeded = rare().trimmed(group, groups[1], ids, areAscending)
  end
  if #unneeded > 0 then redis.pcall("XDEL", stream, unpack(unneeded)) end
end
`,
});

/**
 * `finishWritten(group, ids, isOwn, write)`: moves entries that are known to be in flight for the group. For each of them
 * `write(entry, i)` writes the message somewhere else and returns Redis's reply, or false to write nothing. Then
 * the entries are finished. Returns a 1 or a 0 for each id, whether it was written and finished; Redis's error if
 * it refused a write; and Redis's error if it refused to set an entry aside.
 *
 * No rollback: an entry is written before it is finished. If the first write is refused, nothing has changed. If a
 * later one is refused, the entries before it are finished, since they would be delivered twice otherwise. A caller
 * that sends all ids again gets a 0 for each of these entries.
 *
 * An entry that was deleted from the stream is only acknowledged. One in a foreign format is set aside: its fields go
 * to the unreadable messages. If Redis refuses that, the entry stays in flight, and the others do not wait for it.
 */
export const finishWritten = defineFragment({
  keys: ["unreadable"],
  needs: [finish, mayFinish, readEntry],
  lua: /* lua */ `
local function finishWritten(group, ids, isOwn, write)
  local settled, done, refused, heldUp = {}, {}, nil, nil
  if #ids > 0 then mayFinish(group) end
  for i, id in ipairs(ids) do
    local entry, fields = readEntry(id)
    local written = entry and write(entry, i)
    if type(written) == "table" then
      refused = written
      break
    end
    settled[i] = written and 1 or 0
    local put = not entry and fields and redis.pcall("RPUSH", unreadable, table.concat(fields))
    if type(put) == "table" then heldUp = put else done[#done + 1] = id end
  end
  finish(group, done, isOwn)
  return settled, refused, heldUp
end
`,
});

/**
 * `settle(group, consumer, heldCount, ids, isOwn, write)`: the same for those of the entries that are in flight for the
 * consumer.
 */
export const settle = defineFragment({
  needs: [finishWritten, inFlightFor],
  lua: /* lua */ `
local function settle(group, consumer, heldCount, ids, isOwn, write)
  local mine = inFlightFor(group, consumer, ids, heldCount)
  local settled, positions, own = {}, {}, {}
  for i, id in ipairs(ids) do
    settled[i] = 0
    if mine[id] then
      own[#own + 1] = id
      positions[#positions + 1] = i
      -- Settle an id that is listed twice only once.
      mine[id] = nil
    end
  end
  local written, refused, heldUp = finishWritten(group, own, isOwn, function(entry, k)
    return write(entry, positions[k])
  end)
  for k, i in ipairs(positions) do settled[i] = written[k] end
  return settled, refused, heldUp
end
`,
});
