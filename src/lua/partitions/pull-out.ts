import { defineFragment } from "../fragment.ts";
import { compareBytes, deadlineOf, idOf } from "../fragments/address.ts";
import { clock } from "../fragments/clock.ts";
import { BATCH, destination, journal, type Batch } from "../fragments/journal.ts";
import { keysOfRetries, resolve } from "../places/key-index.ts";
import { behindAddress, pointsTo } from "../fragments/key-entry.ts";
import { unpackMember } from "../fragments/member.ts";
import { KNOWN_FOR, RECORD_BYTES } from "../fragments/once-record.ts";
import { retryBytes, retryOf, waitingRetry } from "../places/retries.ts";
import { asBuffer, asFlag, asNumber, asRow, orNothing } from "../reply.ts";
import { defineScript } from "../script.ts";
import { may } from "../fragments/may.ts";
import { dropRetries } from "../places/retry-moves.ts";
import { leaveRoom, turnBytes, waitingAt } from "../places/room.ts";

/**
 * Takes delayed messages and retries out of a partition, into its journal, also those that wait for their turn. The script
 * needs an argument `own`: the number of this partition, which keeps what belongs to it, or -1 for the ordinary queue.
 *
 * `addMessage(member, score[, waits])`, `addRetry(name, due)`: chooses a message, which is in the waiting room if it `waits`,
 * or a retry, unless it belongs here. The score and the due time are passed as text.
 * `depart()`: writes the chosen ones into the journal, and then removes them; returns the number and the rows of the
 * batch.
 *
 * Every command that Redis may refuse is tried before the journal is written. A refusal after that would leave messages
 * twice. Only an entry in the index of business keys may stay behind: it points to nothing and does no harm. The
 * entry of a message that another group still retries here stays, so that its key finds the rest.
 *
 * A member or a retry that cannot be unpacked is taken out, too, as `unreadable`.
 */
const depart = defineFragment({
  keys: ["timeouts", "businessKeys", "retries", "retrying", "room"],
  needs: [
    behindAddress,
    destination,
    dropRetries,
    idOf,
    journal,
    keysOfRetries,
    may,
    pointsTo,
    retryOf,
    unpackMember,
    waitingRetry,
  ],
  rarely: [leaveRoom],
  lua: /* lua */ `
local isChosen, rows = {}, {}
local leaving = { members = {}, waiting = {}, keys = {}, names = {}, ids = {}, rows = {} }
local function addMessage(member, score, waits)
  local id, _, key = unpackMember(member)
  local to = destinationOf(id or member)
  if to == tonumber(own) or isChosen[member] then return end
  isChosen[member] = true
  local names = waits and leaving.waiting or leaving.members
  names[#names + 1] = member
  rows[#rows + 1] = { to, "message", score, member, "" }
  if not id then rows[#rows] = { to, "unreadable", "", "", member } end
  if key then
    leaving.keys[#leaving.keys + 1] = key
    leaving.ids[#leaving.ids + 1] = id
    leaving.rows[#leaving.rows + 1] = #rows
  end
end
local rowOf = {}
local function addRetry(name, due)
  local address = retryOf(name)
  local to = destinationOf(address and idOf(address) or name)
  if to == tonumber(own) or rowOf[name] then return end
  leaving.names[#leaving.names + 1] = name
  local since, waits = dueOf(due)
  rows[#rows + 1] = { to, "retry", waits and string.format("%.17g", since) or due, name, "" }
  rowOf[name] = #rows
end
local function readValues()
  if #leaving.names == 0 then return {} end
  local readable = {}
  for i, value in ipairs(redis.call("HMGET", retrying, unpack(leaving.names))) do
    local name = leaving.names[i]
    local row, address = rows[rowOf[name]], retryOf(name)
    row[5] = value or name
    local one = address and #address >= 8 and unpackRetry(value)
    if one then
      one.a, one.name = address, name
      readable[#readable + 1] = one
    else
      row[2], row[3], row[4] = "unreadable", "", ""
    end
  end
  return keysOfRetries(readable)
end
local function readKeys()
  local mine = {}
  if #leaving.keys == 0 then return mine end
  for i, entry in ipairs(redis.call("HMGET", businessKeys, unpack(leaving.keys))) do
    if pointsTo(entry, leaving.ids[i]) then
      mine[#mine + 1] = leaving.keys[i]
      rows[leaving.rows[i]][5] = behindAddress(entry)
    end
  end
  return mine
end
local function removeAll(command, key, items)
  -- Lua's stack holds a few thousand values.
  for from = 1, #items, 1000 do
    local some = { unpack(items, from, math.min(from + 999, #items)) }
    if command then redis.call(command, key, unpack(some)) else rare().leaveRoom(some) end
  end
end
local function depart()
  if #rows == 0 then return 0, "" end
  local mine = readKeys()
  for _, key in ipairs(readValues()) do mine[#mine + 1] = key end
  mayJournal()
  may("ZREM", timeouts)
  if #leaving.names > 0 then mayDropRetries() end
  if #leaving.waiting > 0 then
    rare().mayLeaveRoom()
    redis.call("HMGET", room, "")
    redis.call("EXISTS", room)
  end
  local packed = {}
  for i, row in ipairs(rows) do packed[i] = packRow(unpack(row)) end
  local number, all = writeBatch(packed)
  removeAll("ZREM", timeouts, leaving.members)
  removeAll(nil, nil, leaving.waiting)
  removeAll("ZREM", retries, leaving.names)
  removeAll("HDEL", retrying, leaving.names)
  if #mine > 0 then redis.pcall("HDEL", businessKeys, unpack(mine)) end
  return number, all
end
`,
});

/**
 * Takes the messages that the rows name out of this partition, so that they can be put into the partitions that they
 * belong to. Messages that belong to this one (`own`; -1 for the ordinary queue) stay. `buckets` holds the partition of
 * each of the 1,024 buckets, one byte each.
 *
 * A row names a delayed or retrying message by its address (with an id of 8 or 16 bytes), its business key or its
 * member; the other columns are empty. Members are the same in each copy of an offer: for an offer that is sent again,
 * whose deadline the caller does not know. O(log N) for each row.
 *
 * The messages are in the journal until `dropBatch`. If a batch is open already, the script takes nothing out and
 * returns that batch.
 *
 * If Redis refuses a write, as when its memory is full, nothing has changed. The messages' elements in the insertion
 * order stay behind, as they do when a message is cancelled.
 */
export const pullOut = defineScript({
  name: "pull-out",
  keys: ["timeouts", "room"],
  args: ["own", "buckets"],
  each: ["id", "key", "member"],
  needs: [deadlineOf, depart, resolve, unpackMember],
  lua: /* lua */ `
local number, batch = openBatch()
if number > 0 then return { number, batch, 1 } end
for each row do
  if member ~= "" then
    local score = redis.call("ZSCORE", timeouts, member)
    local kept = not score and redis.call("HGET", room, unpackMember(member) or "")
    if score then addMessage(member, score)
    elseif kept and kept:sub(9) == member then addMessage(member, string.format("%.17g", deadlineOf(kept)), true) end
  else
    local place, name, due, all = resolve(id, key)
    if place == "delayed" or place == "waiting" then
      addMessage(name, string.format("%.17g", due), place == "waiting")
    end
    if place == "retrying" then
      for _, one in ipairs(all) do addRetry(one.name, string.format("%.17g", one.due)) end
    end
  end
end
number, batch = depart()
return { number, batch, 0 }
`,
  reply: (raw): Batch => asRow(raw, BATCH),
});

/** A batch, and the cursor of the next page. */
export interface PulledPage extends Batch {
  /** The next cursor; undefined at the end. If the batch was open already, the cursor of this page. */
  readonly next: Buffer | undefined;
}

/** The cursor of the first page. */
export const FIRST_PAGE = Buffer.alloc(0);

/**
 * Looks at the delayed messages of this partition from the latest deadline down, after them at the retries, and then at
 * what waits for its turn: at most `limit` at a time, and about `maxBytes`. Takes out those that belong to another partition,
 * as `pullOut` does. O(log N) for each page.
 *
 * A cursor is `m` (messages) or `r` (retries), followed by the score of the last member that was looked at and the
 * beginning of its bytes. So every member that stays is looked at exactly once, even if others come and go between two
 * pages. The first 32 bytes include the id and are nearly always unique; if the next member begins with the same 32,
 * the cursor holds all bytes. Or it is `t` (turns), followed by the last turn. What begins to wait between two pages
 * goes from the first two places to the third, retries too: so the turns come last, and lead to both.
 */
export const pullOutPage = defineScript({
  name: "pull-out-page",
  keys: ["timeouts", "retries", "turns"],
  args: ["own", "buckets", "cursor", "limit", "maxBytes"],
  needs: [compareBytes, deadlineOf, depart, idOf, retryBytes, turnBytes, unpackMember, waitingAt],
  lua: /* lua */ `
local number, batch = openBatch()
if number > 0 then return { number, batch, 1, cursor } end
limit, maxBytes = tonumber(limit), tonumber(maxBytes)
local isRetries, areTurns = cursor:sub(1, 1) == "r", cursor:sub(1, 1) == "t"
local zset, add = timeouts, addMessage
if isRetries then zset, add = retries, addRetry end

local function isBefore(a, b)
  local count = math.min(#a, #b)
  local whole = count - count % 4
  local order = compareBytes(a, 1, b, 1, whole)
  for at = whole + 1, count do
    if order == 0 then order = a:byte(at) - b:byte(at) end
  end
  if order == 0 then return #a < #b end
  return order < 0
end
-- How many members are before the cursor.
local function findRank()
  if #cursor < 2 then return redis.call("ZCARD", zset) end
  local length = cursor:byte(2)
  local score, start = cursor:sub(3, 2 + length), cursor:sub(3 + length)
  local rank = redis.call("ZCOUNT", zset, "-inf", "(" .. score)
  local high = rank + redis.call("ZCOUNT", zset, score, score)
  while rank < high do
    local at = math.floor((rank + high) / 2)
    if isBefore(redis.call("ZRANGE", zset, at, at)[1], start) then rank = at + 1 else high = at end
  end
  return rank
end

local rank, seen, size = areTurns and 0 or findRank(), 0, 0
local last, lastScore
while rank > 0 and seen < limit and size < maxBytes do
  -- A few at a time, since each may be large.
  local count = math.min(4, limit - seen, rank)
  local found = redis.call("ZRANGE", zset, rank - count, rank - 1, "WITHSCORES")
  for i = #found - 1, 1, -2 do
    last, lastScore = found[i], found[i + 1]
    add(last, lastScore)
    size = size + #last
  end
  rank, seen = rank - count, seen + count
end
-- Looks at what the next turns stand for; returns whether there may be more.
local function lookAtTurns()
  -- A few at a time, since each may be large.
  local count = math.min(4, limit - seen)
  local found = redis.call("ZRANGE", turns, last == "" and "-" or "(" .. last, "+", "BYLEX", "LIMIT", 0, count)
  for _, turn in ipairs(found) do
    local address, group = turnParts(turn)
    local member = address and group == "" and waitingAt(address)
    local retry = address and group ~= "" and retryName(address, group)
    local due = retry and redis.call("ZSCORE", retries, retry)
    if member and unpackMember(member) == idOf(address) then
      addMessage(member, string.format("%.17g", deadlineOf(address)), true)
    elseif due then addRetry(retry, due) end
    last, size = turn, size + #(member or "")
  end
  seen = seen + #found
  return #found == count
end
local areMoreTurns = areTurns
if areTurns then last = cursor:sub(2) end
while areMoreTurns and seen < limit and size < maxBytes do areMoreTurns = lookAtTurns() end
local next = false
if areTurns then
  next = areMoreTurns and "t" .. last
elseif rank > 0 then
  local start = last:sub(1, 32)
  if redis.call("ZRANGE", zset, rank - 1, rank - 1)[1]:sub(1, 32) == start then start = last end
  next = (isRetries and "r" or "m") .. string.char(#lastScore) .. lastScore .. start
elseif not isRetries and redis.call("EXISTS", retries) == 1 then
  next = "r"
elseif redis.call("EXISTS", turns) == 1 then
  next = "t"
end
number, batch = depart()
return { number, batch, 0, next }
`,
  reply: (raw): PulledPage => asRow(raw, { ...BATCH, next: orNothing(asBuffer) }),
});

/**
 * Takes schedules out of this partition, as `pullOut` does with messages: those that the rows name, each with the partition
 * `to` that it belongs to. Their messages migrate like all others.
 */
export const pullOutSchedules = defineScript({
  name: "pull-out-schedules",
  keys: ["schedules", "planning"],
  args: ["own"],
  each: ["schedule", "to"],
  needs: [journal, may],
  lua: /* lua */ `
local number, batch = openBatch()
if number > 0 then return { number, batch, 1 } end
local names, rows = {}, {}
for each row do
  local record = to ~= own and redis.call("HGET", schedules, schedule)
  if record then
    names[#names + 1] = schedule
    rows[#rows + 1] = packRow(tonumber(to), "schedule", redis.call("ZSCORE", planning, schedule) or "inf", schedule, record)
  end
end
if #names == 0 then return { 0, "", 0 } end
mayJournal()
may("HDEL", schedules)
may("ZREM", planning)
number, batch = writeBatch(rows)
redis.call("HDEL", schedules, unpack(names))
redis.call("ZREM", planning, unpack(names))
return { number, batch, 0 }
`,
  reply: (raw): Batch => asRow(raw, BATCH),
});

/** A batch, and whether the next page may find more. */
export interface OncePage extends Batch {
  readonly isMore: boolean;
}

/**
 * Takes what is remembered of handled messages that were offered with `once` out of this partition, up to `limit` keys, once it has
 * no other messages; see `once-record.ts`. Each record goes where the messages of its key belong. The other records go, too: there
 * is nothing that they could lead to.
 */
export const pullOutOnce = defineScript({
  name: "pull-out-once",
  keys: ["once", "onceEnds"],
  args: ["own", "buckets", "limit"],
  needs: [clock, destination, journal, may],
  lua: /* lua */ `
local number, batch = openBatch()
if number > 0 then return { number, batch, 1, 1 } end
local found = redis.call("ZRANGE", onceEnds, 0, limit - 1)
if #found == 0 then return { 0, "", 0, 0 } end
local now, rows = clock() / 1000, {}
for i, record in ipairs(redis.call("HMGET", once, unpack(found))) do
  local isWhole = record and #record >= ${RECORD_BYTES}
  local at, keepFor = struct.unpack("<I8I8", isWhole and record or string.rep("\\0", 16))
  if at > 0 and now < at + math.max(keepFor, ${KNOWN_FOR}) then
    local to = destinationOf(record:sub(17, ${RECORD_BYTES}))
    if to ~= tonumber(own) then rows[#rows + 1] = packRow(to, "once", "", found[i], record:sub(1, ${RECORD_BYTES})) end
  end
end
if #rows > 0 then mayJournal() end
may("HDEL", once)
may("ZREM", onceEnds)
if #rows > 0 then number, batch = writeBatch(rows) end
redis.call("HDEL", once, unpack(found))
redis.call("ZREM", onceEnds, unpack(found))
return { number, batch, 0, 1 }
`,
  reply: (raw): OncePage => asRow(raw, { ...BATCH, isMore: asFlag }),
});

/** Drops the open batch if it has this number, and returns whether it had. All its rows must have arrived by then. */
export const dropBatch = defineScript({
  name: "drop-batch",
  keys: ["journal"],
  args: ["number"],
  needs: [journal],
  lua: /* lua */ `
local open = openBatch()
if open == 0 or open ~= tonumber(number) then return 0 end
return redis.call("HDEL", journal, "rows")
`,
  reply: (raw) => asNumber(raw) === 1,
});
