import { defineFragment } from "../fragment.ts";
import { addressOf, deadlineOf, idOf } from "../fragments/address.ts";
import { clock } from "../fragments/clock.ts";
import { forget } from "../fragments/forget.ts";
import { may } from "../fragments/may.ts";
import { unpackMember } from "../fragments/member.ts";
import { wakeUp } from "../fragments/wake-up.ts";
import { countHands } from "./hands.ts";
import { tokensAt } from "./pace.ts";
import { WAITS, waitingRetry } from "./retries.ts";
import { bringBack } from "./retry-moves.ts";
import { turnBytes } from "./room.ts";

/* The way through the waiting room; see `room.ts`. */

/** What is added to the virtual time of a lane that rests. */
const RESTS = 1e12;

/** Until when a lane is held that is paused: the last instant of a `Date` (epoch ms). */
export const PAUSED = 8.64e15;

/** Milliseconds until holds are looked through again, if some are not over. */
const LOOK_THROUGH = 3_600_000;

/** Milliseconds for which a lane rests that has its full `concurrency` in hand, unless a settlement lets it go on. */
const LOOK_AGAIN = 1000;

/**
 * `admit(members, scores, names, dues, now)`: takes due messages, and due retries, into the waiting room. Returns how many, and how
 * many unreadable elements were set aside. Behind the probes Redis refuses none of its writes.
 *
 * A message of which a copy waits already leaves: an offer that was sent again. One with the id of another message is set
 * aside.
 */
export const admit = defineFragment({
  keys: ["flow", "timeouts", "order", "retries", "room", "turns", "lanes", "resting", "unreadable"],
  needs: [addressOf, bringBack, forget, may, turnBytes, unpackMember],
  lua: /* lua */ `
local function admit(members, scores, names, dues, now)
  local ids, trailers, theirs, kept, poison = {}, {}, {}, {}, {}
  local virtual, holds, fresh, held, isKnown = nil, nil, {}, {}, {}
  local function enter(trailer, address, group)
    local lane = laneIn(trailer)
    theirs[#theirs + 1], theirs[#theirs + 2] = 0, turnOf(trailer, address, group)
    if isKnown[lane] then return end
    isKnown[lane] = true
    if not virtual then
      local found = redis.call("HMGET", flow, "turn", "holds")
      virtual, holds = tonumber(found[1] or nil) or 0, found[2]
    end
    local hold = holds and tonumber(redis.call("HGET", flow, "hold:" .. lane) or nil)
    local rests = hold and hold > now / 1000
    if rests then held[#held + 1], held[#held + 2] = hold, lane end
    fresh[#fresh + 1], fresh[#fresh + 2] = virtual + (rests and ${RESTS} or 0), lane
  end
  for i, member in ipairs(members) do
    local id, _, _, trailer = unpackMember(member)
    ids[i], trailers[i] = id or "", trailer
  end
  local before, waits = #ids > 0 and redis.call("HMGET", room, unpack(ids)) or {}, {}
  for i, member in ipairs(members) do
    local id = ids[i]
    local other = waits[id] or before[i] and before[i]:sub(9)
    if id == "" or other and other ~= member then
      poison[#poison + 1] = member
    elseif not other then
      local address = addressOf(scores[i], id)
      waits[id] = member
      kept[#kept + 1], kept[#kept + 2] = id, address:sub(1, 8) .. member
      enter(trailers[i], address, "")
    end
  end
  local found, later = readRetries(names), {}
  local dueOf = {}
  for i, name in ipairs(names) do dueOf[name] = dues[i] end
  for _, entry in ipairs(found.entries) do
    enter(entry.t, entry.a, entry.g)
    later[#later + 1], later[#later + 2] = ${WAITS} + math.max(0, dueOf[entry.name]), entry.name
  end
  may("ZREM", timeouts)
  may("ZADD", turns)
  may("ZADD", lanes)
  for _, bytes in ipairs(found.unreadable) do poison[#poison + 1] = bytes end
  if #poison > 0 then
    redis.call("RPUSH", unreadable, unpack(poison))
    redis.call("ZREM", timeouts, unpack(poison))
  end
  dropRetries(found.broken, #found.broken)
  if #kept > 0 then redis.call("HSET", room, unpack(kept)) end
  if #theirs > 0 then redis.call("ZADD", turns, unpack(theirs)) end
  if #held > 0 then redis.call("ZADD", resting, unpack(held)) end
  if #fresh > 0 then redis.call("ZADD", lanes, "NX", unpack(fresh)) end
  if #later > 0 then redis.call("ZADD", retries, "XX", unpack(later)) end
  if #members > 0 then
    redis.call("ZREM", timeouts, unpack(members))
    if elementsAre == "members" then forget(members) end
  end
  return #theirs / 2, #poison
end
`,
});

/** `paceOf(words)`: what a lane may, by its words in `flow`, `step burst cost slots`: a table with these. */
export const paceOf = defineFragment({
  lua: /* lua */ `
local function paceOf(words)
  -- What is no such text is no limit.
  local step, burst, cost, slots = words:match("^(%S+) (%S+) (%S+) (%S+)$")
  local function number(text, otherwise) return tonumber(text or "") or otherwise end
  return { step = number(step, 0), burst = number(burst, 1), cost = number(cost, 1), slots = number(slots, 0) }
end
`,
});

/**
 * `keepUsed(now, before, after)`: what the lanes have used of their rates stays used, in messages. `before` and `after`: functions
 * that return the words of a lane.
 */
export const keepUsed = defineFragment({
  keys: ["lanePaces"],
  needs: [paceOf],
  lua: /* lua */ `
local function keepUsed(now, before, after)
  local found = redis.call("ZRANGEBYSCORE", lanePaces, string.format("(%.0f", now), "+inf", "WITHSCORES")
  for i = 1, #found, 2 do
    local old, new = paceOf(before(found[i])), paceOf(after(found[i]))
    local used = old.step > 0 and (tonumber(found[i + 1]) - now) / old.step or 0
    redis.call("ZADD", lanePaces, "XX", now + math.min(used, new.burst) * new.step, found[i])
  end
end
`,
});

/** `scoresOf(zset, names)`: the scores of these members of a ZSET, each a number, or false. */
const scoresOf = defineFragment({
  lua: /* lua */ `
local function scoresOf(zset, names)
  local scores = {}
  for i, name in ipairs(names) do scores[i] = tonumber(redis.call("ZSCORE", zset, name) or nil) or false end
  return scores
end
`,
});

/**
 * `endAllRests(holdOf)`: lets all lanes go on that rest, but for those that are held. `holdOf(lane)`: until when (epoch ms), or
 * nil.
 */
export const endAllRests = defineFragment({
  keys: ["lanes", "resting"],
  lua: /* lua */ `
local function endAllRests(holdOf)
  local found = redis.call("ZRANGEBYSCORE", lanes, "${RESTS}", "+inf", "WITHSCORES")
  redis.call("UNLINK", resting)
  for i = 1, #found, 2 do
    local hold = holdOf(found[i])
    if hold then redis.call("ZADD", resting, hold, found[i])
    else redis.call("ZADD", lanes, "XX", tonumber(found[i + 1]) - ${RESTS}, found[i]) end
  end
end
`,
});

/**
 * A lane that is held rests until then, whether messages wait in it or not: the fields `hold:<lane>` of `flow` (epoch ms), and
 * `holds`, when to look whether they are over. One that is paused is held until `PAUSED`.
 *
 * `restUntil(lane, till)`: lets a lane rest, if messages wait in it.
 * `holdLane(lane, till)`: holds it. A longer hold stays.
 * `goOn(lane, now)`: lets a lane go on that rests, or, if it is held, at the end of the hold; `now` in microseconds. Returns
 * whether it goes on now.
 */
export const holding = defineFragment({
  keys: ["flow", "lanes", "resting"],
  lua: /* lua */ `
local function restUntil(lane, till)
  local at = tonumber(redis.call("ZSCORE", lanes, lane) or nil)
  if not at then return end
  local rests = tonumber(redis.call("ZSCORE", resting, lane) or nil) or 0
  redis.call("ZADD", resting, math.max(rests, till), lane)
  if at < ${RESTS} then redis.call("ZADD", lanes, "XX", at + ${RESTS}, lane) end
end
local function holdLane(lane, till)
  local found = redis.call("HMGET", flow, "hold:" .. lane, "holds")
  till = math.max(till, tonumber(found[1] or nil) or 0)
  restUntil(lane, till)
  if till >= ${PAUSED} then return end
  local holds = math.max(till, tonumber(found[2] or nil) or 0)
  redis.call("HSET", flow, "hold:" .. lane, string.format("%.0f", till), "holds", string.format("%.0f", holds))
end
local function goOn(lane, now)
  local hold = tonumber(redis.call("HGET", flow, "hold:" .. lane) or nil)
  local at = tonumber(redis.call("ZSCORE", lanes, lane) or nil)
  if not at or at < ${RESTS} then return false end
  if hold and hold > now / 1000 then
    redis.call("ZADD", resting, "XX", hold, lane)
    return false
  end
  redis.call("ZADD", lanes, "XX", at - ${RESTS}, lane)
  redis.call("ZREM", resting, lane)
  return true
end
`,
});

/**
 * `freeLanes(names)`: lets these lanes go on, since messages of theirs have left that had a slot, and wakes whoever moves
 * messages, if any wait. Returns Redis's error if it refuses to.
 */
export const freeing = defineFragment({
  keys: ["flow", "turns"],
  needs: [clock, holding, wakeUp],
  lua: /* lua */ `
local function freeLanes(names)
  if redis.call("EXISTS", turns) == 0 then return nil end
  local now = clock()
  for _, name in ipairs(names) do goOn(name, now) end
  local due = math.floor(now / 1000)
  local look = tonumber(redis.call("HGET", flow, "look") or nil)
  if look and look > due then redis.call("HSET", flow, "look", string.format("%.0f", due)) end
  return wakeUp(due)
end
`,
});

/** `dropHolds(now)`: removes the holds that are over; `now` in microseconds. */
export const dropHolds = defineFragment({
  keys: ["flow"],
  lua: /* lua */ `
local function dropHolds(now)
  local page, names, areLeft = redis.call("HSCAN", flow, "0", "MATCH", "hold:*", "COUNT", 100000)[2], {}, false
  for i = 1, #page, 2 do
    if (tonumber(page[i + 1]) or 0) <= now / 1000 then names[#names + 1] = page[i] else areLeft = true end
  end
  if areLeft then redis.pcall("HSET", flow, "holds", string.format("%.0f", math.floor(now / 1000) + ${LOOK_THROUGH}))
  else names[#names + 1] = "holds" end
  for from = 1, #names, 1000 do redis.call("HDEL", flow, unpack(names, from, math.min(from + 999, #names))) end
end
`,
});

/**
 * Deals turns.
 *
 * `endRests(now)`: lets the lanes go on whose rest is over; `now` in microseconds, as everywhere.
 * `deal(most, now, settings)`: the next turns, `most` at most, each a table with its `turn` and its `lane`; and the
 * lanes that it has looked at. Reads only, but for what is not in hand any more. `settings`: the fields `lane` (what each lane
 * may, unless it has its own), `own` (whether there are such), `rates` and `slots` (whether any lane has a rate, or a limit of
 * what is in hand) of `flow`; and `arriving`, as in `paced`, if there are lanes to hold back.
 * `settleLanes(all, now, isSure)`: writes how far these lanes have come, whose `moved` says how many went; returns whether one
 * has more slots than were seen. `isSure`: whether all turns have gone that were dealt.
 */
export const dealing = defineFragment({
  keys: ["flow", "turns", "lanes", "resting", "lanePaces"],
  needs: [countHands, paceOf, scoresOf, tokensAt, turnBytes],
  lua: /* lua */ `
local function endRests(now)
  local names = redis.call("ZRANGEBYSCORE", resting, "-inf", math.floor(now / 1000), "LIMIT", 0, 200)
  if #names == 0 then return end
  local back = {}
  for i, score in ipairs(scoresOf(lanes, names)) do
    if score and score >= ${RESTS} then back[#back + 1], back[#back + 2] = score - ${RESTS}, names[i] end
  end
  if #back > 0 then redis.call("ZADD", lanes, "XX", unpack(back)) end
  redis.call("ZREM", resting, unpack(names))
end
local function notePaces(paces, now)
  -- Those that have all of their burst again.
  local past = redis.call("ZRANGEBYSCORE", lanePaces, "-inf", string.format("(%.0f", now), "LIMIT", 0, 200)
  if #past > 0 then redis.call("ZREM", lanePaces, unpack(past)) end
  local noted = redis.pcall("ZADD", lanePaces, unpack(paces))
  if type(noted) == "table" then return noted end
  local last = tonumber(redis.call("ZRANGE", lanePaces, -1, -1, "WITHSCORES")[2])
  redis.call("EXPIRE", lanePaces, math.ceil((last - now) / 1000000) + 1)
end
local function settingsOf(names, settings, now)
  local fields, all = {}, {}
  for i, name in ipairs(names) do fields[i] = "lane:" .. name end
  local own = settings.own and redis.call("HMGET", flow, unpack(fields)) or {}
  local used = settings.rates and scoresOf(lanePaces, names) or {}
  for i, name in ipairs(names) do
    local one = paceOf(own[i] or settings.lane)
    one.name, one.order = name, i
    all[i] = one
    one.tokens, one.moved, one.taken, one.next, one.turns = math.huge, 0, 0, 1, {}
    if one.step > 0 then
      -- A later arrival means that the server's clock was set back.
      one.arrival = math.min(used[i] or 0, now + one.burst * one.step)
      one.tokens = tokensAt(one.arrival, now, one.step, one.burst)
    end
    if settings.slots and one.slots > 0 then
      local count, isUnsure = handsOf(name, one.slots)
      one.free, one.isUnsure = math.max(0, one.slots - count), isUnsure
    end
    one.left = math.min(one.tokens, one.free or math.huge)
  end
  return all
end
-- Messages without a lane are in every partition.
local function isArriving(turn, buckets)
  local address = turn and turn:byte(1) > 0 and turnParts(turn)
  if not address or #address < 2 then return false end
  local high, low = address:byte(#address - 1, #address)
  return buckets:byte(high % 4 * 256 + low + 1) == 1
end
local function deal(most, now, settings)
  local chosen, names, starts = {}, {}, {}
  local first = most > 0 and redis.call("ZRANGEBYSCORE", lanes, "-inf", "(${RESTS}", "WITHSCORES", "LIMIT", 0, most) or {}
  for i = 1, #first, 2 do names[#names + 1], starts[#starts + 1] = first[i], tonumber(first[i + 1]) end
  if #names == 0 then return chosen, {} end
  local all = settingsOf(names, settings, now)
  for i, one in ipairs(all) do one.start, one.at = starts[i], starts[i] end

  -- A heap by virtual time: in this order they are one.
  local heap, size = { unpack(all) }, #all
  local function isBefore(a, b)
    return a.at < b.at or a.at == b.at and a.order < b.order
  end
  local function sink()
    local top, i = heap[1], 1
    while true do
      local child = 2 * i
      if child < size and isBefore(heap[child + 1], heap[child]) then child = child + 1 end
      if child > size or not isBefore(heap[child], top) then break end
      heap[i], i = heap[child], child
    end
    heap[i] = top
  end
  local function leave()
    heap[1], heap[size], size = heap[size], nil, size - 1
    if size > 0 then sink() end
  end

  -- One more than its part: so that it knows whether it has more.
  local page = math.ceil(most / #all) + 1
  while #chosen < most and size > 0 do
    local one = heap[1]
    if one.left > 0 and not one.turns[one.next] and not one.isLast then
      local prefix = lanePrefix(one.name)
      local range = { "[" .. prefix, "(" .. prefix .. "\\255", "BYLEX", "LIMIT", one.taken, page }
      one.turns, one.next = redis.call("ZRANGE", turns, unpack(range)), 1
      one.isLast = #one.turns < page
      -- As if it had all in hand that it may: it looks again.
      if settings.arriving and one.taken == 0 and isArriving(one.turns[1], settings.arriving) then
        one.left, one.free, one.isUnsure = 0, 0, false
      end
    end
    local turn = one.left > 0 and one.turns[one.next]
    if turn then
      chosen[#chosen + 1] = { turn = turn, lane = one, at = one.at }
      one.next, one.taken, one.left, one.at = one.next + 1, one.taken + 1, one.left - 1, one.at + one.cost
      sink()
    else
      leave()
    end
  end
  return chosen, all
end
local function settleLanes(all, now, isSure)
  local times, ended, rests, paces, areMore = {}, {}, {}, {}, false
  for _, one in ipairs(all) do
    local at, used = one.start + one.moved * one.cost, one.step > 0 and math.max(one.arrival, now) + one.moved * one.step
    if used and one.moved > 0 then paces[#paces + 1], paces[#paces + 2] = used, one.name end
    if isSure and one.isLast and not one.turns[one.next] then
      ended[#ended + 1] = one.name
    else
      local rest = nil
      -- What was dealt and did not go has used nothing.
      if one.moved >= one.tokens then rest = nextTokens(used, one.step, one.burst) end
      -- Who settles a message lets the lane go on; it looks by itself in case that one is gone.
      local isFull = one.free and one.free <= one.moved
      local hasOther = isFull and one.isUnsure and handsOf(one.name, one.slots) < one.slots
      if isFull and not hasOther then rest = math.max(rest or 0, math.floor(now / 1000) + ${LOOK_AGAIN}) end
      if rest then
        rests[#rests + 1], rests[#rests + 2] = rest, one.name
        at = at + ${RESTS}
      elseif hasOther then
        areMore = true
      end
      if at ~= one.start then times[#times + 1], times[#times + 2] = at, one.name end
    end
  end
  -- Until when it rests comes first: without that it would never go on.
  if #rests > 0 then redis.call("ZADD", resting, unpack(rests)) end
  if #times > 0 then redis.call("ZADD", lanes, "XX", unpack(times)) end
  if #ended > 0 then redis.call("ZREM", lanes, unpack(ended)) end
  if #paces > 0 then notePaces(paces, now) end
  return areMore
end
`,
});

/**
 * `lanesMay(members, now, settings)`: whether the rates of their lanes let all of these messages go at once. If so, it uses them
 * up, unless Redis refuses. Not if one has conditions: dropped, it would take nothing.
 */
export const lanesMay = defineFragment({
  keys: ["lanePaces", "timeouts"],
  needs: [dealing, turnBytes, unpackMember],
  lua: /* lua */ `
local function lanesMay(members, now, settings)
  local counts, names, used = {}, {}, {}
  for _, member in ipairs(members) do
    local id, _, _, trailer, guard, within = unpackMember(member)
    if not id or guard or within or trailer and trailer:byte(3) == 9 and trailer:byte(1) == 255 then return false end
    local lane = laneIn(trailer)
    if not counts[lane] then names[#names + 1] = lane end
    counts[lane] = (counts[lane] or 0) + 1
  end
  for _, one in ipairs(settingsOf(names, settings, now)) do
    local count = counts[one.name]
    if one.tokens < count then return false end
    if one.step > 0 then used[#used + 1], used[#used + 2] = math.max(one.arrival, now) + count * one.step, one.name end
  end
  if #used == 0 then return true end
  -- When memory is full, Redis refuses only the first write, and never a removal.
  redis.call("ZREMRANGEBYRANK", timeouts, 1, 0)
  return not notePaces(used, now)
end
`,
});

/**
 * `waitingOf(chosen)`: reads what these turns stand for. Sets the `address` of each turn, and the `member` or the `retry`,
 * neither if nothing of it waits any more. Returns the members, and their deadlines; and whether there are retries. Retries that
 * cannot be read leave, as in `bringBack`.
 */
export const waitingOf = defineFragment({
  keys: ["room", "retries", "unreadable"],
  needs: [bringBack, deadlineOf, idOf, scoresOf, turnBytes, waitingRetry],
  lua: /* lua */ `
local function waitingOf(chosen)
  local members, deadlines, ids, ofIds, names, ofNames = {}, {}, {}, {}, {}, {}
  for _, one in ipairs(chosen) do
    local address, group = turnParts(one.turn)
    one.address = address
    if address and group == "" then ids[#ids + 1], ofIds[#ofIds + 1] = idOf(address), one
    elseif address then names[#names + 1], ofNames[#ofNames + 1] = retryName(address, group), one end
  end
  for i, kept in ipairs(#ids > 0 and redis.call("HMGET", room, unpack(ids)) or {}) do
    local one = ofIds[i]
    if kept and kept:sub(1, 8) == one.address:sub(1, 8) then
      one.id, one.member, one.due = ids[i], kept:sub(9), deadlineOf(one.address)
      members[#members + 1], deadlines[#deadlines + 1] = one.member, one.due
    end
  end
  local waiting, byName = {}, {}
  for i, score in ipairs(scoresOf(retries, names)) do
    if score and score > ${WAITS} then
      waiting[#waiting + 1], byName[names[i]], ofNames[i].due = names[i], ofNames[i], score - ${WAITS}
    end
  end
  local found = readRetries(waiting)
  for _, entry in ipairs(found.entries) do byName[entry.name].retry = entry end
  if #found.unreadable > 0 then redis.call("RPUSH", unreadable, unpack(found.unreadable)) end
  dropRetries(found.broken, #found.broken)
  return members, deadlines, #found.entries > 0
end
`,
});

/**
 * `mendRoom()`: gives turns to messages that have none, and lanes to turns that have none, if these keys were deleted; a few at a
 * time. Lets lanes go on whose rest has no recorded end: called if `resting` is empty. Returns whether it found any.
 */
export const mendRoom = defineFragment({
  keys: ["room", "turns", "lanes"],
  needs: [endAllRests, turnBytes, unpackMember],
  lua: /* lua */ `
local function mendRoom()
  if redis.call("ZCOUNT", lanes, "${RESTS}", "+inf") > 0 then
    endAllRests(function() return nil end)
    return true
  end
  local entries = {}
  if redis.call("EXISTS", turns) == 0 then
    local found = redis.call("HSCAN", room, "0", "COUNT", 100)[2]
    for i = 1, #found, 2 do
      local id, _, _, trailer = unpackMember(found[i + 1]:sub(9))
      if id then entries[#entries + 1], entries[#entries + 2] = 0, turnOf(trailer, found[i + 1]:sub(1, 8) .. id, "") end
    end
    if #entries == 0 then return false end
    redis.call("ZADD", turns, unpack(entries))
  end
  local fresh, from = {}, "-"
  for _ = 1, 100 do
    local turn = redis.call("ZRANGE", turns, from, "+", "BYLEX", "LIMIT", 0, 1)[1]
    if not turn then break end
    local lane = turn:sub(2, 1 + turn:byte(1))
    fresh[#fresh + 1], fresh[#fresh + 2], from = 0, lane, "(" .. lanePrefix(lane) .. "\\255"
  end
  return #fresh > 0 and redis.call("ZADD", lanes, "NX", unpack(fresh)) > 0 or #entries > 0
end
`,
});
