import { defineFragment } from "../fragment.ts";
import { addressOf } from "../fragments/address.ts";
import { claim } from "../fragments/claim.ts";
import { replied } from "../fragments/deadline.ts";
import { keysOfRetries } from "../places/key-index.ts";
import { ownKeys } from "../fragments/key-entry.ts";
import { may } from "../fragments/may.ts";
import { listed, pushAll } from "../places/ready-list.ts";
import { bringBack } from "../places/retry-moves.ts";
import { closeRoom, leaveRoom } from "../places/room.ts";
import { tidyHands } from "../places/hands.ts";
import { admit, dealing, dropHolds, lanesMay, mendRoom, waitingOf } from "../places/turns.ts";
import { appendAll } from "../places/stream.ts";
import { fieldsOf } from "../fragments/stream-info.ts";
import { unpackMember } from "../fragments/member.ts";
import { lateRuns, waitsForRuns } from "../places/own-lanes.ts";
import { CLAIM, lastClaim, unfitness, unpackDue } from "./due-messages.ts";

/** How many messages may be ready before no turn is dealt, unless the flow says otherwise. */
export const AHEAD = 100;

/** How many may be ready in this part, which has one of `shares` equal shares of it; `ahead` as the flow has it. */
const OWN_AHEAD = `math.max(1, math.floor((tonumber(ahead or nil) or ${AHEAD}) / shares))`;

/** Milliseconds until the next look at the ready messages, if there are as many as may be: at first, and at most. */
const FIRST_PAUSE = 5;
const LAST_PAUSE = 100;

/**
 * `readyCount(enough)`: how many messages are ready; if there are at most `enough`, it may count those in flight as well. With
 * several groups, it counts for the group that is furthest on, so a group that does not consume holds up no other.
 */
const readyCount = defineFragment({
  keys: ["ready", "stream"],
  rarely: [fieldsOf],
  lua: /* lua */ `
local function readyCount(enough)
  local count = redis.call("LLEN", ready)
  local length = redis.call("XLEN", stream)
  if length == 0 or count + length <= enough then return count + length end
  local least = length
  for _, fields in ipairs(redis.call("XINFO", "GROUPS", stream)) do
    local group = rare().fieldsOf(fields)
    least = math.min(least, length - group.pending, group.lag or length)
  end
  return count + math.max(0, least)
end
`,
});

/**
 * `mayGoStraight(due, count, pace, now)`: whether the due messages need no turns: none waits, there is room for all of them,
 * their lanes' rates have what they need, and none has a priority. If so, it has used these rates up. `due` and `count` as
 * `pacedDue` returns them; `pace` as `paceAt` does.
 * `runsApart(due, latest)`: if only schedules have lanes: what of `due` has turns, in the same form; nil if there is nothing to
 * do about turns, and then the instant at which to look at them again, nil if none waits.
 * `cutAtRun(first, count)`: leaves such a run, and what is behind it, out of what is due; returns how many are left.
 */
export const straight = defineFragment({
  keys: ["flow", "timeouts", "retries", "room", "turns", "hands"],
  needs: [readyCount, waitsForRuns],
  rarely: [lanesMay],
  lua: /* lua */ `
local function hasPriority(member)
  local size = #member
  local head = 9 + (member:byte(1) or 0)
  if size < head then return false end
  local at = head + struct.unpack("<I8", member, head - 7) + 1
  if at > size or member:byte(at) ~= 255 then return false end
  at = at + 2
  for _ = 1, 2 do
    local tag, a, b, c, d = member:byte(at, at + 4)
    if not d or tag ~= 9 and tag ~= 5 then return tag == 6 end
    at = at + 5 + a + b * 256 + c * 65536 + d * 16777216
  end
  return member:byte(at) == 6
end
local function mayGoStraight(due, count, pace, now)
  if redis.call("EXISTS", turns, room) > 0 then return false end
  local found = redis.call("HMGET", flow, "ahead", "rates", "target", "slots", "holds", "most", "lane", "own")
  if found[3] or found[4] and redis.call("EXISTS", hands) == 1 then return false end
  if count == 0 then return true end
  if found[4] or found[5] or found[6] or found[2] and arriving ~= "" then return false end
  if count >= tonumber(limit) or pace and pace.tokens < count then return false end
  local members = due[timeouts][1]
  -- Retries have turns: whose lanes are in bytes that would have to be read.
  if #members < count then return false end
  for _, member in ipairs(members) do
    if hasPriority(member) then return false end
  end
  local ahead = found[1]
  ahead = ${OWN_AHEAD}
  if readyCount(ahead - count) + count > ahead then return false end
  return not found[2] or rare().lanesMay(members, now, { lane = found[7] or "", own = found[8], rates = found[2] })
end
local function cutAtRun(first, count)
  local members, scores = unpack(first, 1, 2)
  for i = 1, count do
    if waitsForRuns(members[i]) then
      first[3] = scores[i]
      for k = count, i, -1 do members[k], scores[k] = nil, nil end
      return i - 1
    end
  end
  return count
end
local function runsApart(due, latest)
  local runs, dues = {}, {}
  for i, member in ipairs(due[timeouts][1]) do
    if waitsForRuns(member) then runs[#runs + 1], dues[#dues + 1] = member, due[timeouts][2][i] end
  end
  local later = due[retries]
  if #runs == 0 and not (later and later[1][1]) then
    local look = tonumber(redis.call("HGET", flow, "look") or nil)
    if look and look > latest then return nil, look end
    if not look and redis.call("EXISTS", turns, room) == 0 then return nil end
  end
  return { [timeouts] = { runs, dues, false }, [retries] = later and { later[1], later[2], false } }
end
`,
});

/**
 * `together(reply, beside)`: one reply for two moves of a script, the later of which has `reply`.
 * `unlessMoved(beside, refusal)`: the reply if the first move was all, and the second one was refused.
 */
export const together = defineFragment({
  lua: /* lua */ `
local function together(reply, beside)
  local function soonest(i)
    local a, b = tonumber(reply[i] or nil), tonumber(beside[i] or nil)
    if not a or b and b < a then reply[i] = beside[i] end
  end
  reply[1], reply[2] = reply[1] + beside[1], reply[2] + beside[2]
  soonest(4)
  soonest(8)
  if beside[1] > 0 then reply[5] = 0 end
  reply[6], reply[7] = math.max(reply[6], beside[6]), math.max(reply[7], beside[7])
  for _, value in ipairs(beside[9]) do reply[9][#reply[9] + 1] = value end
  reply[18] = math.max(reply[18], beside[18])
  return reply
end
local function unlessMoved(beside, refusal)
  return beside[1] + beside[2] + #beside[9] == 0 and refusal or beside
end
`,
});

/**
 * `inTurns(due, now, latest, pace, useUp)`: takes due messages and retries of a queue with lanes into the waiting room, deals as many turns as may
 * go, and moves their messages; returns the reply of the transfer. `due` has what `firstDue` returns for each ZSET; `useUp`
 * uses the rate of the whole queue up.
 *
 * It looks at the waiting messages no sooner than the last run has said (`look` in `flow`), unless new ones have come. One that
 * stands by sees only what the mover has left undone.
 *
 * `look` is the next instant at which something may go: when there are tokens for the queue, or for the first lane that rests; or,
 * if there are as many ready messages as may be, after a pause, which grows while none is taken.
 */
export const inTurns = defineFragment({
  keys: [
    "flow",
    "timeouts",
    "retries",
    "businessKeys",
    "unreadable",
    "stream",
    "resting",
    "room",
    "turns",
    "lanePaces",
    "mover",
  ],
  needs: [
    addressOf,
    admit,
    appendAll,
    bringBack,
    claim,
    closeRoom,
    dealing,
    dropHolds,
    keysOfRetries,
    lastClaim,
    lateRuns,
    leaveRoom,
    listed,
    may,
    mendRoom,
    ownKeys,
    pushAll,
    readyCount,
    replied,
    tidyHands,
    unfitness,
    unpackDue,
    unpackMember,
    waitingOf,
  ],
  lua: /* lua */ `
-- Since when a message is due; offered with a deadline in the past, since its offer, which ids of 16 bytes contain.
local function dueSince(one, now)
  if not one.member or #one.id ~= 16 then return one.due end
  local high, low = struct.unpack(">I4I4", one.id)
  local stamp = math.floor((high * 4294967296 + low) / 1000)
  return stamp < now / 1000 and math.max(one.due, stamp) or one.due
end
local function inTurns(due, now, latest, pace, useUp)
  local nowMs, first = math.floor(now / 1000), due[timeouts]
  local later = due[retries] or { {}, {}, false }
  local found = redis.call("HMGET", flow, "ahead", "lane", "own", "rates", "look", "turn", "pause", "target", "slots", "holds", "most", "cursor")
  local ahead, look = found[1], tonumber(found[5] or nil)
  ahead = ${OWN_AHEAD}
  local hasStream = redis.call("EXISTS", stream) == 1
  local isReliable = hasStream or due[retries] ~= nil and makes == "1"
  -- In a plain queue nobody knows what is in hand.
  local inHand = isReliable and tonumber(found[11] or nil)
  local settings = { lane = found[2] or "", own = found[3], rates = found[4], slots = isReliable and found[9] }
  settings.arriving = arriving ~= "" and (settings.rates or settings.slots) and arriving
  local function reply(fields)
    for i = 1, 18 do
      if fields[i] == nil then fields[i] = false end
    end
    return fields
  end
  local function nextOf(instant)
    local next = math.min(first[3] or math.huge, later[3] or math.huge, instant or math.huge)
    return next < math.huge and replied(next)
  end
  -- No rollback: what removes is asked before anything is pushed.
  mayLeaveRoom()
  if settings.rates then may("ZADD", lanePaces) end
  if #later[1] > 0 then mayDropRetries() end
  local entered, aside = 0, 0
  if #first[1] + #later[1] > 0 then entered, aside = admit(first[1], first[2], later[1], later[2], now) end
  if entered + aside == 0 and look and look > latest then
    local isOutrun, last = lastClaim(task)
    return reply({ 0, 0, now, nextOf(look), isOutrun, 0, 0, false, {}, last, [17] = 1, [18] = 0 })
  end

  if found[10] and (tonumber(found[10]) or 0) <= nowMs then dropHolds(now) end
  endRests(now)
  local tokens = pace and pace.tokens or math.huge
  local space = math.max(0, ahead - readyCount(-1))
  -- The stream holds what is ready and what is in flight.
  if inHand then space = math.max(0, math.min(space, inHand - redis.call("XLEN", stream))) end
  local slot = settings.slots and "2" or inHand and "1"
  local most = math.min(tonumber(limit), tokens, space)
  local chosen, all = deal(most, now, settings)
  local dealt = #chosen
  for _, one in ipairs(settings.slots and entered > 0 and lateRuns(first[1], now) or {}) do
    local isDealt = false
    for i = 1, dealt do isDealt = isDealt or chosen[i].turn == one.turn end
    if not isDealt then chosen[#chosen + 1] = one end
  end
  local members, deadlines, hasRetries = waitingOf(chosen)
  -- Retries have nowhere else to go: a stream that somebody has deleted is made again.
  local isStream = hasRetries or isReliable
  local messages, readable, poison, unfit, own = unpackDue(members, deadlines, isStream and addressOf, now)

  -- What goes, in the order of the turns; and what leaves beside it.
  local going, gone, entries, retrying = {}, {}, {}, {}
  for _, one in ipairs(chosen) do
    if one.member and readable[#entries - #retrying + 1] == one.member then
      going[#going + 1], entries[#entries + 1] = one, messages[#entries - #retrying + 1]
    elseif one.retry then
      going[#going + 1], entries[#entries + 1], retrying[#retrying + 1] = one, one.retry, one.retry
    else
      gone[#gone + 1] = one
    end
  end
  entries.several = messages.several
  for i = 1, slot and isStream and #entries or 0 do entries[i].l = going[i].lane.slots > 0 and slot or "1" end
  if useUp and #going > 0 then
    local refusal = useUp(#going)
    if refusal then return refusal end
  end
  local moved, refusal = 0, nil
  if #retrying > 0 then mayDropRetries() end
  if #poison > 0 then redis.call("RPUSH", unreadable, unpack(poison)) end
  if #entries > 0 then moved, refusal = (isStream and appendAll or pushAll)(entries) end
  if useUp and moved < #going then useUp(moved) end
  if refusal and moved + entered + aside + #unfit == 0 then return refusal end

  local fields, theirs, names = {}, {}, {}
  local since = math.huge
  for i = 1, moved do
    local one = going[i]
    one.lane.moved, since = one.lane.moved + 1, math.min(since, dueSince(one, now))
    gone[#gone + 1] = one
    if one.retry then names[#names + 1] = one.retry.name end
  end
  for _, one in ipairs(gone) do
    theirs[#theirs + 1] = one.turn
    if one.member then fields[#fields + 1] = one.id end
  end
  local keys = refusal and {} or keysOfRetries(retrying)
  for i = 1, refusal and 0 or #own do keys[#keys + 1] = own[i] end
  if #unfit > 0 then noteDropped(unfit, now) end
  if #theirs > 0 then redis.call("ZREM", turns, unpack(theirs)) end
  if #fields > 0 then redis.call("HDEL", room, unpack(fields)) end
  dropRetries(names, #names)
  if #keys > 0 then redis.pcall("HDEL", businessKeys, unpack(keys)) end
  local areFree = settleLanes(all, now, not refusal)
  if settings.slots and (moved == 0 or now % 8 == 0) then
    local cursor = tidyHands(found[12] or "0")
    if cursor ~= "0" then redis.call("HSET", flow, "cursor", cursor) elseif found[12] then redis.call("HDEL", flow, "cursor") end
  end

  local isLeft, next = closeRoom(), nil
  if isLeft then
    local pause = moved > 0 and ${FIRST_PAUSE} or math.min(${LAST_PAUSE}, 2 * (tonumber(found[7] or nil) or ${FIRST_PAUSE}))
    local isAll = dealt == most
    -- If it has looked at as many lanes as it looks for, and they had too little, there may be others.
    local areMore = areFree or isAll and most == tonumber(limit) or not isAll and #all == most
    if dealt > moved or areMore then next = nowMs
    elseif isAll and most == tokens then next = pace.next(moved)
    elseif isAll then next = nowMs + pause
    else next = tonumber(redis.call("ZRANGE", resting, 0, 0, "WITHSCORES")[2] or nil) or mendRoom() and nowMs or nowMs + pause end
    local last = chosen[dealt]
    local virtual = last and last.at or found[6] or 0
    redis.pcall("HSET", flow, "look", string.format("%.0f", next), "turn", virtual, "pause", isAll and most == space and pause or ${FIRST_PAUSE})
  elseif found[8] == "paced" then
    -- In this order: without its \`target\` it would stay in lanes.
    redis.call("HSET", flow, "kind", "paced")
    redis.call("HDEL", flow, "ahead", "lane", "own", "rates", "slots", "most", "cursor", "target")
    redis.call("UNLINK", lanePaces)
  elseif found[8] then
    redis.call("UNLINK", flow, lanePaces)
  end
  if moved > 0 and mark == "1" and not isStream then setListed() end
${CLAIM}
  local waited = look and since < math.huge and math.max(0, math.floor(math.min(look, nowMs) - since)) or 0
  since = since < math.huge and replied(since)
  local isOutrun, known = 0, claimed
  local hasListed = isStream and grace ~= "0" and redis.call("EXISTS", ready) or 0
  if moved + #unfit == 0 and entered == 0 then isOutrun, known = lastClaim(task) end
  return reply({ moved, aside + #poison, now, nextOf(next), isOutrun, isStream and 2 or 1, hasListed, since, unfit.rows, known,
    [17] = 1, [18] = waited })
end
`,
});
