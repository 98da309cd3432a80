import { defineFragment } from "../fragment.ts";
import { addressOf } from "../fragments/address.ts";
import { claim } from "../fragments/claim.ts";
import { payloadsOf } from "../fragments/collected.ts";
import { condition } from "../fragments/condition.ts";
import { ownKeys } from "../fragments/key-entry.ts";
import { unpackMember } from "../fragments/member.ts";
import { overlaps } from "../fragments/run.ts";
import { withoutConditions } from "../fragments/trailer.ts";
import { noteDrops } from "../places/drops.ts";

/*
 * What a transfer does with messages that are due, whether it finds them among the delayed ones or in the waiting room.
 */

/**
 * The unfit: due members whose conditions do not hold, with `rows` about them for the reply, and the names of their
 * schedules in `runs`.
 *
 * `noteUnfit(unfit, due, i, one)`: adds the member at `i`, if it is unfit; returns whether it is. `due` has the `members`,
 * their `scores` and `now`; `one` the member's `id`, `key`, `trailer` and conditions, and the `rest` of the trailer without these.
 * `noteDropped(unfit, now)`: counts and remembers the unfit.
 * `drop(unfit, now)`: the same, and removes them before.
 */
export const unfitness = defineFragment({
  keys: ["timeouts", "dropped"],
  needs: [addressOf, condition, noteDrops, overlaps],
  lua: /* lua */ `
local function scoreAt(due, i)
  local scores = due.scores
  if not scores[i] then
    local found = redis.call("ZRANGE", timeouts, 0, #due.members - 1, "WITHSCORES")
    for k = 2, #found, 2 do scores[k / 2] = tonumber(found[k]) end
  end
  return scores[i]
end
local function noteUnfit(unfit, due, i, one)
  local guard, within = one.guard, one.within
  local reason = (guard or within) and failing(guard, within, within and scoreAt(due, i), due.now)
  reason = reason or overlaps(one.trailer) and 3
  if not reason then return false end
  unfit[#unfit + 1] = due.members[i]
  unfit.runs[#unfit] = runIn(one.rest)
  for _, value in ipairs({ addressOf(scoreAt(due, i), one.id), reason, one.key or "" }) do
    unfit.rows[#unfit.rows + 1] = value
  end
  return true
end
local function noteDropped(unfit, now)
  local counts, total = { 0, 0, 0 }, 0
  for i = 2, #unfit.rows, 3 do counts[unfit.rows[i]] = counts[unfit.rows[i]] + 1 end
  -- For people: a refusal must not turn a done removal into an error.
  local reasons = { "onlyIf", "deliverWithin", "overlap" }
  for i, before in ipairs(redis.pcall("HMGET", dropped, unpack(reasons))) do
    local sum = (tonumber(before or 0) or 0) + counts[i]
    total = total + sum - counts[i]
    if counts[i] > 0 then redis.pcall("HSET", dropped, reasons[i], string.format("%.0f", sum)) end
  end
  noteDrops(unfit.rows, total, now)
  for i, name in pairs(unfit.runs) do
    local field = reasons[unfit.rows[3 * i - 1]] .. "\\0" .. name
    local sum = (tonumber(redis.pcall("HGET", dropped, field) or 0) or 0) + 1
    redis.pcall("HSET", dropped, field, string.format("%.0f", sum))
  end
end
local function drop(unfit, now)
  redis.call("ZREM", timeouts, unpack(unfit))
  noteDropped(unfit, now)
end
`,
});

/**
 * `unpackDue(members, scores, toAddress, now)`: unpacks due members for the LIST or, with `addressOf`, for the stream; and
 * asks their conditions. Reads only. Returns six values: the messages, as `pushAll` or `appendAll` takes them; their members; the poison, which is members of an unknown
 * layout; the unfit; the business keys that point to the messages and the unfit; and since when the oldest message was
 * due, see `dueSince` in the reply.
 */
export const unpackDue = defineFragment({
  needs: [ownKeys, unpackMember],
  rarely: [payloadsOf, unfitness, withoutConditions],
  lua: /* lua */ `
local function unpackDue(members, scores, toAddress, now)
  local messages, readable, poison, keys, ids, since = {}, {}, {}, {}, {}, math.huge
  local unfit, due = { rows = {}, runs = {} }, nil
  for i, member in ipairs(members) do
    local id, payload, key, trailer, guard, within = unpackMember(member)
    local isUnfit = false
    if guard or within or trailer and trailer:byte(3) == 9 and trailer:byte(1) == 255 then
      due = due or { members = members, scores = scores, now = now }
      local rest = (guard or within) and rare().withoutConditions(trailer) or trailer
      local one = { id = id, key = key, trailer = trailer, rest = rest, guard = guard, within = within }
      isUnfit = rare().noteUnfit(unfit, due, i, one)
      trailer = rest
    end
    if payload and not isUnfit then
      if #messages == 0 and scores[i] then
        since = scores[i]
        -- Offered with a deadline in the past, it is late only since its offer, which ids of 16 bytes contain.
        if #id == 16 then
          local high, low = struct.unpack(">I4I4", id)
          local stamp = math.floor((high * 4294967296 + low) / 1000)
          if stamp < now / 1000 then since = math.max(since, stamp) end
        end
      end
      local message = toAddress and { a = toAddress(scores[i], id), p = payload, t = trailer } or payload
      if not toAddress and trailer and trailer:byte(1) == 255 and trailer:find("\\11", 3, true) then
        message = rare().payloadsOf(payload, trailer)
        messages.several = messages.several or message ~= payload
      end
      messages[#messages + 1] = message
      readable[#readable + 1] = member
    elseif not payload then
      poison[#poison + 1] = member
    end
    if key then
      keys[#keys + 1] = key
      ids[#ids + 1] = id
    end
  end
  return messages, readable, poison, unfit, ownKeys(keys, ids), since
end
`,
});

/** `lastClaim(task)`: 1 if another task was the last to claim that it moves, else 0; and when. */
export const lastClaim = defineFragment({
  needs: [claim],
  lua: /* lua */ `
local function lastClaim(task)
  local last, claimedAt = readClaim()
  return last and last ~= task and 1 or 0, claimedAt
end
`,
});

/** Claims, if the script has moved anything and is to claim; `claimed` is when, or 0. */
export const CLAIM = /* lua */ `
-- Last, since Redis may refuse it: then only the claim is missing.
local claimed = 0
if moved + #unfit > 0 and claim ~= "0" then
  -- A clock that was set back does not turn the claims back.
  claimed = math.max(now, known + 1)
  redis.call("SET", mover, string.format("%s@%.0f", task, claimed), "EX", 2592000)
end`;
