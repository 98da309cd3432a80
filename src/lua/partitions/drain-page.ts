import { clock } from "../fragments/clock.ts";
import {
  consumersOf,
  groupsOf,
  isAlive,
  maxAttemptsIn,
  streamId,
} from "../fragments/stream-info.ts";
import { countDue } from "../places/due.ts";
import { deadLetter, letter } from "../places/dead.ts";
import { destination, BATCH, journal, type Batch } from "../fragments/journal.ts";
import { entryOf, heldBack, rankOf } from "../places/stream.ts";
import { finish, mayFinish } from "../places/settle.ts";
import { handedOut, inFlight } from "../places/in-flight.ts";
import { idOf } from "../fragments/address.ts";
import { orBury } from "../fragments/failure.ts";
import { retryBytes } from "../places/retries.ts";
import { asFlag, asNumber, asRow, asText } from "../reply.ts";
import { defineScript } from "../script.ts";
import { may } from "../fragments/may.ts";

/** How many messages are left in a partition, by their state. */
export interface Left {
  readonly delayed: number;
  /** Payloads in the ready LIST, and about how many entries of the stream some group has not been given yet. */
  readonly ready: number;
  /** Over all groups. */
  readonly inFlight: number;
  readonly dead: number;
  /** Includes members that could not be unpacked. */
  readonly quarantined: number;
  readonly retrying: number;
}

/** A batch, and what is left in the partition afterwards. */
export interface DrainedPage extends Batch {
  /**
   * Whether the next page may find more at once: this one ended at a limit, or met an open batch. The next page may
   * still be empty.
   */
  readonly isMore: boolean;
  /** The arguments of the next page. */
  readonly after: string;
  readonly letter: string;
  readonly left: Left;
}

/**
 * Takes messages that are ready out of a partition, so that they can be put where they belong: at most `limit` items,
 * and about `maxBytes`. A `limit` above a thousand may overflow Lua's stack.
 *
 * Out of a partition that is removed (`isRemoved` 1) goes everything but delayed messages and retries. The ready LIST, the quarantine and members that could not be unpacked go to the partition `into`, each
 * from its head. Dead letters and entries of the stream follow, each to the partition of its bucket in `buckets`.
 *
 * Out of a partition that stays go the dead letters that belong elsewhere, and the entries of the stream that do and that
 * no group has been given yet, up to the entry that was the newest when the first page of this change (`epoch`) began.
 * `letter` and `after` are where the last page ended, empty for the first page. If the groups have been given different entries, no entry can go for
 * one group alone: then all unread entries go, and those that belong here come back at the end of the stream, in their
 * order. The journal notes in `bound` where the last entry is and whether all go, so that whoever goes on with the change
 * moves no entry a second time.
 *
 * `fenced` names consumers that cannot handle a message any more, one line each, as in `orphans` of `hold.ts`: the
 * holders of the partition before a change has taken the lease. What they have in flight goes first, in the order of its
 * ranks (`rankOf`). What belongs here stays in flight for the next holder, who handles it first.
 *
 * An entry migrates once for each group. Entries in flight for a dead consumer migrate, too: for each a failed attempt
 * is counted, as `reclaim` does. A message that has had `maxAttempts`, as the consumer's name tells, migrates as a
 * dead letter; if the name does not tell it, no message dies. A consumer counts as dead if Redis has not seen it for
 * the lease timeout in its name, or for `timeout` milliseconds if its name has none. Entries in flight for a live
 * consumer stay, and count as left. Entries that no group still needs do not count. A message that is held back stays so,
 * and its delivery does not count.
 *
 * Everything is in the journal until `dropBatch`. If a batch is open already, the script takes nothing out and returns
 * that batch. If Redis refuses a write, as when its memory is full, nothing has changed: every command that may be
 * refused is tried before the journal is written.
 */
export const drainPage = defineScript({
  name: "drain-page",
  keys: ["timeouts", "ready", "quarantine", "unreadable", "stream", "retries", "dead", "journal"],
  args: [
    "own",
    "limit",
    "maxBytes",
    "into",
    "buckets",
    "timeout",
    "isRemoved",
    "epoch",
    "after",
    "letter",
    "fenced",
  ],
  needs: [
    clock,
    consumersOf,
    countDue,
    deadLetter,
    destination,
    entryOf,
    finish,
    groupsOf,
    handedOut,
    heldBack,
    idOf,
    inFlight,
    isAlive,
    journal,
    letter,
    maxAttemptsIn,
    may,
    mayFinish,
    orBury,
    rankOf,
    retryBytes,
    streamId,
  ],
  lua: /* lua */ `
-- The greatest id of all. No entry can follow it, and Redis refuses a range that begins after it.
local greatest = "18446744073709551615-18446744073709551615"
local function entriesBehind(key, id, count, last)
  if id == greatest then return {} end
  return redis.call("XRANGE", key, id == "" and "-" or "(" .. id, last or "+", "COUNT", count)
end
local function countLeft()
  local groups, held = groupsOf(), 0
  local isUnread = #groups == 0
  for _, group in ipairs(groups) do
    held = held + group.pending
    isUnread = isUnread or #entriesBehind(stream, group["last-delivered-id"], 1) > 0
  end
  local entries = redis.call("XLEN", stream)
  local unread = isUnread and entries > 0 and math.max(entries - held, 1) or 0
  return {
    countDue(retries),
    redis.call("LLEN", ready) + unread,
    held,
    redis.call("XLEN", dead),
    redis.call("LLEN", quarantine) + redis.call("LLEN", unreadable),
    redis.call("ZCARD", retries),
  }
end
local number, batch = openBatch()
if number > 0 then return { number, batch, 1, countLeft(), 1, after, letter } end

limit, maxBytes = tonumber(limit), tonumber(maxBytes)
local rows, seen, size, tries, removals = {}, 0, 0, {}, {}
local function add(to, kind, score, name, value)
  local row = packRow(to, kind, score, name, value)
  rows[#rows + 1] = row
  size = size + #row
end
-- Calls visit for each item that read returns. Reads a few items at a time, since each may be large.
local function takeEach(read, visit)
  while seen < limit and size < maxBytes do
    local count = math.min(10, limit - seen)
    local found = read(count)
    for _, one in ipairs(found) do visit(one) end
    seen = seen + #found
    if #found < count then return end
  end
end

local function takeList(key, kind)
  local taken = 0
  takeEach(function(count) return redis.call("LRANGE", key, taken, taken + count - 1) end, function(element)
    add(into, kind, "", "", element)
    taken = taken + 1
  end)
  if taken == 0 then return end
  tries[#tries + 1] = function() may("LTRIM", key) end
  removals[#removals + 1] = function() redis.call("LTRIM", key, taken, -1) end
end

local function takeDead()
  local ids = {}
  takeEach(function(count) return entriesBehind(dead, letter, count) end, function(found)
    letter = found[1]
    local to = destinationOf(idOf(letterOf(letter, found[2]).a))
    if isRemoved ~= "1" and to == tonumber(own) then return end
    ids[#ids + 1] = letter
    add(to, "dead", "", "", cmsgpack.pack(found[2]))
  end)
  if #ids == 0 then return end
  tries[#tries + 1] = function() may("XDEL", dead) end
  removals[#removals + 1] = function() redis.call("XDEL", dead, unpack(ids)) end
end

-- For an entry whose consumer has died, lost is the consumer's name. Returns whether the entry may be deleted without
-- regard to other groups.
local isForeign, now = {}, clock()
local function takeEntry(id, fields, group, lost)
  local entry = entryOf(fields)
  if not entry then
    if not isForeign[id] then add(into, "unreadable", "", "", table.concat(fields)) end
    isForeign[id] = true
    return true
  end
  if entry.g and group and entry.g ~= group then return false end
  local to = destinationOf(idOf(entry.a))
  -- A message that waits for the rest of its pause has not been attempted again.
  if isHeldBack(entry, now) then lost = nil end
  local function moveOn()
    local slot = (entry.l == "1" or entry.l == "2") and "/" .. entry.l or ""
    local score = (entry.d and "1" or "") .. (entry.u and string.format(":%.0f", entry.u) or "") .. slot
    add(to, "entry", score, retryName(entry.a, group or entry.g or ""), packRetry(entry))
  end
  if lost then
    orBury(entry, now, maxAttemptsIn(lost), function(reason)
      add(to, "dead", "", "", cmsgpack.pack(deadFields(entry, group, reason)))
    end, moveOn)
  else
    moveOn()
  end
  return entry.g ~= nil
end

-- Entries that a script has appended and kept in flight, which the group would read once more: see keepInFlight.
local isKept = {}
local function noteKept(group, last)
  if last == greatest then return end
  for _, found in ipairs(inFlight(group, "(" .. last, "+", 1000)) do isKept[found[1]] = true end
end
local function takeUnread(group, last, highest)
  local before, ids, isOwn = last, {}, {}
  takeEach(function(count) return entriesBehind(stream, last, count, highest) end, function(found)
    last = found[1]
    if isKept[last] then return end
    ids[#ids + 1] = last
    isOwn[last] = takeEntry(last, found[2], group)
  end)
  if #ids == 0 then return end
  tries[#tries + 1] = function()
    may("XDEL", stream)
    if not group then return end
    mayFinish(group)
    inFlight(group, "-", "+", 1)
    redis.call("XGROUP", "SETID", stream, group, before)
  end
  removals[#removals + 1] = function()
    if not group then return redis.call("XDEL", stream, unpack(ids)) end
    -- Leaves the group as if it had been given the entries and had acknowledged them.
    redis.call("XGROUP", "SETID", stream, group, last)
    finish(group, ids, isOwn)
  end
end

local function belongsHere(fields)
  local entry = entryOf(fields)
  return isRemoved ~= "1" and (not entry or destinationOf(idOf(entry.a)) == tonumber(own))
end
local function takeInFlight(group, found)
  local at, ids, isOwn = 0, {}, {}
  takeEach(function(count)
    local page = { unpack(found, at + 1, math.min(at + count, #found)) }
    at = at + #page
    return page
  end, function(row)
    ids[#ids + 1] = row.id
    isOwn[row.id] = row.fields and takeEntry(row.id, row.fields, group, row.lost)
  end)
  if #ids == 0 then return end
  tries[#tries + 1] = function() mayFinish(group) end
  removals[#removals + 1] = function() finish(group, ids, isOwn) end
end
-- What is in flight for a consumer and does not belong here, up to most entries.
local function inFlightElsewhere(group, consumer, hasDied, most, found)
  local last = "-"
  while #found < most and last ~= "(" .. greatest do
    local page = inFlight(group, last, "+", 100, consumer)
    for _, row in ipairs(page) do
      local id = row[1]
      last = "(" .. id
      -- An entry that was deleted from the stream is only acknowledged.
      local fields = (redis.call("XRANGE", stream, id, id)[1] or {})[2]
      if not fields or not belongsHere(fields) then
        local entry = fields and entryOf(fields)
        local lost = hasDied and (not entry or wasHandedOut(entry, row[4])) and consumer
        found[#found + 1] = { id = id, fields = fields, rank = rankOf(id, entry), lost = lost }
      end
    end
    if #page < 100 then break end
  end
  return found
end

-- Returns the last entry to look at, and whether all unread entries go up to there.
local function boundOf(groups)
  local noted, mode, bound = (redis.call("HGET", journal, "bound") or ""):match("^(%d+) (%a+) (%d+%-%d+)$")
  local isNoted = noted == epoch
  if not isNoted then
    local newest = redis.call("XREVRANGE", stream, "+", "-", "COUNT", 1)[1]
    mode, bound = "some", newest and newest[1] or "0-0"
  end
  local isAll = mode == "all"
  for _, group in ipairs(groups) do
    local last, first = group["last-delivered-id"], groups[1]["last-delivered-id"]
    if last ~= first and (compareIds(last, bound) < 0 or compareIds(first, bound) < 0) then isAll = true end
  end
  if bound ~= "0-0" and (not isNoted or isAll ~= (mode == "all")) then
    redis.call("HSET", journal, "bound", epoch .. " " .. (isAll and "all" or "some") .. " " .. bound)
  end
  return bound, isAll
end
-- No group has been given these entries yet, so nothing but the entry itself has to go.
local function takeMisplaced(groups, bound)
  for _, group in ipairs(groups) do
    local last = group["last-delivered-id"]
    if after == "" or compareIds(last, after) > 0 then after = last end
  end
  if after ~= "" and compareIds(after, bound) >= 0 then return end
  local ids = {}
  takeEach(function(count) return entriesBehind(stream, after, count, bound) end, function(found)
    after = found[1]
    if isKept[after] or belongsHere(found[2]) then return end
    ids[#ids + 1] = after
    takeEntry(after, found[2])
  end)
  if #ids == 0 then return end
  tries[#tries + 1] = function() may("XDEL", stream) end
  removals[#removals + 1] = function() redis.call("XDEL", stream, unpack(ids)) end
end

if isRemoved == "1" then
  takeList(ready, "ready")
  takeList(quarantine, "quarantine")
  takeList(unreadable, "unreadable")
  -- Nothing stays, so each page begins at the first letter.
  letter = ""
end
takeDead()
local hasDied = {}
for mark, name in fenced:gmatch("(=?)([^\\n]+)") do hasDied[name] = mark == "" end
local groups = groupsOf()
local bound, isAll
if isRemoved ~= "1" then bound, isAll = boundOf(groups)
elseif #groups == 0 then takeUnread(nil, "") end
for _, group in ipairs(groups) do
  local dead, held = {}, {}
  for _, consumer in ipairs(group.pending > 0 and consumersOf(group.name) or {}) do
    local isFenced = hasDied[consumer.name] ~= nil
    if consumer.pending > 0 and isFenced then
      inFlightElsewhere(group.name, consumer.name, hasDied[consumer.name], math.huge, held)
    end
    if not isFenced and isRemoved == "1" and not isAlive(consumer, timeout) then dead[#dead + 1] = consumer end
  end
  table.sort(held, function(one, other) return compareIds(one.rank, other.rank) < 0 end)
  takeInFlight(group.name, held)
  local last = group["last-delivered-id"]
  if group.pending > 0 then noteKept(group.name, last) end
  if isRemoved == "1" then takeUnread(group.name, last)
  elseif isAll and compareIds(last, bound) < 0 then takeUnread(group.name, last, bound) end
  for _, consumer in ipairs(dead) do
    if consumer.pending > 0 then
      takeInFlight(group.name, inFlightElsewhere(group.name, consumer.name, true, limit - seen, {}))
    end
  end
end
if isRemoved ~= "1" and not isAll then takeMisplaced(groups, bound) end
if #removals > 0 then
  mayJournal()
  for _, try in ipairs(tries) do try() end
  if #rows > 0 then number, batch = writeBatch(rows) end
  for _, remove in ipairs(removals) do remove() end
end
return { number, batch, 0, countLeft(), (seen >= limit or size >= maxBytes) and 1 or 0, after, letter }
`,
  reply: (raw): DrainedPage =>
    asRow(raw, {
      ...BATCH,
      left: (counts) =>
        asRow(counts, {
          delayed: asNumber,
          ready: asNumber,
          inFlight: asNumber,
          dead: asNumber,
          quarantined: asNumber,
          retrying: asNumber,
        }),
      isMore: asFlag,
      after: asText,
      letter: asText,
    }),
});
