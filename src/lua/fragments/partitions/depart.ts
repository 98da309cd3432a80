import { defineFragment } from "../../fragment.ts";
import { destination } from "./destination.ts";
import { journal } from "./journal.ts";
import { retry } from "../failed/retry.ts";
import { idOf } from "../message/id-of.ts";
import { indexEntry } from "../message/index-entry.ts";
import { unpackMember } from "../message/unpack-member.ts";

/**
 * Takes delayed messages and retries out of a partition, into its journal. The script needs an argument `own`: the
 * number of this partition, which keeps what belongs to it, or -1 for the ordinary queue.
 *
 * `addMessage(member, score)`, `addRetry(name, due)`: chooses a message or a retry, unless it belongs here. The score
 * and the due time are passed as text.
 * `depart()`: writes the chosen ones into the journal, and then removes them; returns the number and the rows of the
 * batch.
 *
 * Every command that Redis may refuse is tried before the journal is written. A refusal after that would leave messages
 * in two places. Only an entry in the index of business keys may stay behind: it points to nothing and does no harm.
 *
 * A member or a retry that cannot be unpacked is taken out, too, as `unreadable`.
 */
export const depart = defineFragment({
  keys: ["timeouts", "businessKeys", "retries", "retrying"],
  needs: [destination, idOf, indexEntry, journal, retry, unpackMember],
  lua: /* lua */ `
local isChosen, rows = {}, {}
local leaving = { members = {}, keys = {}, names = {}, ids = {}, places = {} }
local function addMessage(member, score)
  local id, _, key = unpackMember(member)
  local to = destinationOf(id or member)
  if to == tonumber(own) or isChosen[member] then return end
  isChosen[member] = true
  leaving.members[#leaving.members + 1] = member
  rows[#rows + 1] = { to, "message", score, member, "" }
  if not id then rows[#rows] = { to, "unreadable", "", "", member } end
  if key then
    leaving.keys[#leaving.keys + 1] = key
    leaving.ids[#leaving.ids + 1] = id
    leaving.places[#leaving.places + 1] = #rows
  end
end
local waiting = {}
local function addRetry(name, due)
  local address = retryOf(name)
  local to = destinationOf(address and idOf(address) or name)
  if to == tonumber(own) or waiting[name] then return end
  leaving.names[#leaving.names + 1] = name
  rows[#rows + 1] = { to, "retry", due, name, "" }
  waiting[name] = #rows
end
local function readValues()
  if #leaving.names == 0 then return end
  for i, value in ipairs(redis.call("HMGET", retrying, unpack(leaving.names))) do
    local name = leaving.names[i]
    local row, address = rows[waiting[name]], retryOf(name)
    row[5] = value or name
    if not (address and #address >= 8 and unpackRetry(value)) then row[2], row[3], row[4] = "unreadable", "", "" end
  end
end
local function readKeys()
  local mine = {}
  if #leaving.keys == 0 then return mine end
  for i, entry in ipairs(redis.call("HMGET", businessKeys, unpack(leaving.keys))) do
    if pointsTo(entry, leaving.ids[i]) then
      mine[#mine + 1] = leaving.keys[i]
      rows[leaving.places[i]][5] = behindAddress(entry)
    end
  end
  return mine
end
local function removeAll(command, key, items)
  -- Lua's stack holds a few thousand values.
  for from = 1, #items, 1000 do
    redis.call(command, key, unpack(items, from, math.min(from + 999, #items)))
  end
end
local function depart()
  if #rows == 0 then return 0, "" end
  local mine = readKeys()
  readValues()
  mayJournal()
  redis.call("ZREM", timeouts, "delayline: no such member")
  if #leaving.names > 0 then
    redis.call("ZREM", retries, "delayline: no such member")
    redis.call("HDEL", retrying, "delayline: no such field")
  end
  local packed = {}
  for i, row in ipairs(rows) do packed[i] = packRow(unpack(row)) end
  local number, all = writeBatch(packed)
  removeAll("ZREM", timeouts, leaving.members)
  removeAll("ZREM", retries, leaving.names)
  removeAll("HDEL", retrying, leaving.names)
  if #mine > 0 then redis.pcall("HDEL", businessKeys, unpack(mine)) end
  return number, all
end
`,
});
