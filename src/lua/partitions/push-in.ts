import { addressOf, compareBytes, isAddress } from "../fragments/address.ts";
import { earliestDue } from "../places/due.ts";
import { appendEntry } from "../places/stream.ts";
import { delayedWith, heldKeyOf, isFreeFor } from "../places/key-index.ts";
import { packOutcome } from "../fragments/key-entry.ts";
import { KNOWN_FOR, RECORD_BYTES } from "../fragments/once-record.ts";
import { unpackMember } from "../fragments/member.ts";
import { writes } from "../fragments/writes.ts";
import { putDelayed, takeBack } from "../places/delayed.ts";
import { retryOf } from "../places/retries.ts";
import { asNumber } from "../reply.ts";
import { defineScript } from "../script.ts";
import { may } from "../fragments/may.ts";
import { wakeUp } from "../fragments/wake-up.ts";
import { dropRetries } from "../places/retry-moves.ts";

/**
 * Puts rows from another partition into this one: those rows of batch `number` of partition `source` that belong here;
 * see `journal.ts`. Returns false and changes nothing if that batch or a later one has arrived already.
 *
 * A message or a retry that is already here stays as it is. A business key is made to point to the arriving message,
 * unless it points to another delayed message; and to an arriving retry, unless another message that waits holds it. A
 * missing consumer group of an entry is created at the beginning of the stream. What is remembered of a key gives way to what is
 * here of a newer message.
 *
 * No rollback: every write records how to undo it, and the arrival is noted last. A batch that Redis refuses (full
 * memory, WRONGTYPE, an ACL) can thus be sent again. Everything that undoing needs is tried before the first write. A
 * created group stays.
 */
export const pushIn = defineScript({
  name: "push-in",
  keys: [
    "timeouts",
    "order",
    "businessKeys",
    "retries",
    "retrying",
    "ready",
    "quarantine",
    "unreadable",
    "stream",
    "dead",
    "schedules",
    "planning",
    "once",
    "onceEnds",
    "arrivals",
  ],
  args: ["channel", "source", "number"],
  each: ["kind", "score", "name", "value"],
  needs: [
    addressOf,
    appendEntry,
    compareBytes,
    delayedWith,
    dropRetries,
    earliestDue,
    heldKeyOf,
    isAddress,
    isFreeFor,
    may,
    packOutcome,
    putDelayed,
    retryOf,
    takeBack,
    unpackMember,
    wakeUp,
    writes,
  ],
  lua: /* lua */ `
local arrived = redis.call("HGET", arrivals, source)
local last = tonumber(arrived or 0) or 0
if last % 1 == 0 and last <= 9e15 and last >= tonumber(number) then return 0 end
local earliest, first = earliestDue() or math.huge, math.huge

-- Tries what undoing needs. If memory is full, Redis refuses the ZADD, and after it nothing.
local has = {}
for each row do has[kind] = true end
attempt(function()
  may("ZADD", timeouts)
  may("LTRIM", order)
  if has.message then may("ZREM", timeouts) end
  if has.message or has.retry then may("HDEL", businessKeys) end
  if has.retry then mayDropRetries() end
  if has.schedule then
    may("HDEL", schedules)
    may("ZREM", planning)
  end
  if has.once then may("HDEL", once) end
  if has.entry then may("XDEL", stream) end
  if has.dead then may("XDEL", dead) end
end)

local lists = { ready = ready, quarantine = quarantine, unreadable = unreadable }
local elements = { ready = {}, quarantine = {}, unreadable = {} }
local function push(list, element)
  elements[list][#elements[list] + 1] = element
end

local function point(key, old, entry)
  write(function()
    if old then redis.pcall("HSET", businessKeys, key, old) else redis.pcall("HDEL", businessKeys, key) end
  end, "HSET", businessKeys, key, entry)
end
local function noMessages() return { members = {}, deadlines = {}, elements = {}, keys = {}, behind = {} } end
local messages = noMessages()
local function putMessages()
  local members, deadlines, elements = messages.members, messages.deadlines, messages.elements
  local keys, behind = messages.keys, messages.behind
  messages = noMessages()
  if #members == 0 or refused() then return end
  local refusal, added, known, head = putDelayed(members, deadlines, elements)
  if not wrote(function() takeBack(added) end, refusal or 0) then return end
  if head then first = math.min(first, deadlines[head]) end
  for _, i in ipairs(known) do keys[i] = nil end
  for i, key in pairs(keys) do
    if not delayedWith(key) then point(key, redis.call("HGET", businessKeys, key), elements[i] .. behind[i]) end
  end
end
local function addMessage(score, member, behind)
  local at, id, _, key = tonumber(score), unpackMember(member)
  if not id or not at or at ~= at then return push("unreadable", member) end
  local element = #id == 16 and addressOf(at, id) or member
  local i = #messages.members + 1
  messages.members[i], messages.deadlines[i] = member, at
  messages.elements[i] = isAddress(element) and element or member
  if behind ~= "" and isAddress(element) then messages.keys[i], messages.behind[i] = key, behind end
  -- Lua's stack holds a few thousand values.
  if i == 1000 then putMessages() end
end

local function putRetry(due, name, value)
  local at, address = tonumber(due), retryOf(name)
  local one = address and #address >= 8 and unpackRetry(value)
  if not at or at ~= at or not one then return push("unreadable", value) end
  local function forget(isNew) if isNew == 1 then redis.pcall("HDEL", retrying, name) end end
  local function takeBack(isNew) if isNew == 1 then redis.pcall("ZREM", retries, name) end end
  if redis.call("HEXISTS", retrying, name) == 0 then write(forget, "HSET", retrying, name, value) end
  if write(takeBack, "ZADD", retries, "NX", at, name) ~= 1 then return end
  first = math.min(first, at)
  one.a = address
  local key = heldKeyOf(one)
  local old = key and redis.call("HGET", businessKeys, key)
  if key and isFreeFor(address, key, old) then point(key, old, address .. packOutcome(0)) end
end

local function putSchedule(planAt, name, record)
  local at = tonumber((planAt:gsub("inf", "1e999")))
  if not at or at ~= at then return push("unreadable", record) end
  if redis.call("HGET", schedules, name) then return end
  if write(function() redis.pcall("HDEL", schedules, name) end, "HSET", schedules, name, record) ~= 1 then return end
  write(function(isNew) if isNew == 1 then redis.pcall("ZREM", planning, name) end end, "ZADD", planning, "NX", planAt, name)
  -- Planners learn of it.
  first = -1
end

local function putOnce(key, record)
  if #record ~= ${RECORD_BYTES} then return push("unreadable", record) end
  local old = redis.call("HGET", once, key)
  local isOld = old and #old >= ${RECORD_BYTES}
  local order = isOld and compareBytes(old, 25, record, 25, 16) or -1
  local at, keepFor = struct.unpack("<I8I8", record)
  if order > 0 or order == 0 and struct.unpack("<I8", old) >= at then return end
  -- Other groups may have the message here.
  local new = order == 0 and record .. old:sub(${RECORD_BYTES + 1}) or record
  write(function()
    if old then redis.pcall("HSET", once, key, old) else redis.pcall("HDEL", once, key) end
  end, "HSET", once, key, new)
  try("ZADD", onceEnds, string.format("%.0f", at + math.max(keepFor, ${KNOWN_FOR})), key)
end

local isThere = {}
local function openGroup(group)
  if group == "" or isThere[group] then return end
  isThere[group] = true
  local made = redis.pcall("XGROUP", "CREATE", stream, group, "0", "MKSTREAM")
  -- Redis 6.2 puts a minus in front.
  if made.err and not made.err:find("^%-?BUSYGROUP") then wrote(nil, made) end
end
local function putEntry(score, name, value)
  local address, group = retryOf(name)
  local entry = address and #address >= 8 and unpackRetry(value)
  if not entry then return push("unreadable", value) end
  openGroup(group)
  local isOrphan, heldBackUntil, slot = score:match("^(1?):?(%d*)/?([12]?)$")
  entry.a, entry.g, entry.d, entry.u, entry.l = address, group, isOrphan, heldBackUntil, slot
  if not refused() then wrote(function(id) redis.pcall("XDEL", stream, id) end, appendEntry(entry)) end
end

local function putDead(value)
  local isRead, fields = pcall(cmsgpack.unpack, value)
  local isWhole = isRead and type(fields) == "table" and #fields > 0 and #fields % 2 == 0 and #fields < 4000
  for i = 1, isWhole and #fields or 0 do isWhole = isWhole and type(fields[i]) == "string" end
  if not isWhole then return push("unreadable", value) end
  write(function(id) redis.pcall("XDEL", dead, id) end, "XADD", dead, "*", unpack(fields))
end

-- Reads may be refused as well, after something was written.
attempt(function()
  for each row do
    if refused() then break end
    if kind == "message" then addMessage(score, name, value)
    elseif kind == "retry" then putRetry(score, name, value)
    elseif kind == "entry" then putEntry(score, name, value)
    elseif kind == "dead" then putDead(value)
    elseif kind == "schedule" then putSchedule(score, name, value)
    elseif kind == "once" then putOnce(name, value)
    elseif elements[kind] then push(kind, value)
    else push("unreadable", value) end
  end
  putMessages()
end)
-- Is each of them a LIST? Only then push to the first.
for list, all in pairs(elements) do
  if #all > 0 then attempt(may, "LTRIM", lists[list]) end
end
for list, all in pairs(elements) do
  -- Lua's stack holds a few thousand values.
  for from = 1, #all, 1000 do
    local last = math.min(from + 999, #all)
    local function takeBack() redis.pcall("LTRIM", lists[list], 0, from - last - 2) end
    write(takeBack, "RPUSH", lists[list], unpack(all, from, last))
  end
end
if not refused() then wrote(nil, wakeUp(first, earliest)) end
try("HSET", arrivals, source, number)
return done(1)
`,
  reply: (raw) => asNumber(raw) === 1,
});

/** Returns the number of the last batch that has arrived from `source`; 0 if none has. */
export const lastArrived = defineScript({
  name: "last-arrived",
  keys: ["arrivals"],
  args: ["source"],
  lua: /* lua */ `return redis.call("HGET", arrivals, source) or 0`,
  reply: asNumber,
});
