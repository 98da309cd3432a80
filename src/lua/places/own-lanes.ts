import { defineFragment } from "../fragment.ts";
import { deadlineOf, idOf } from "../fragments/address.ts";
import { keysOf } from "./delayed.ts";
import { unpackMember } from "../fragments/member.ts";
import { wakeUp } from "../fragments/wake-up.ts";
import { leaveRoom, turnBytes } from "./room.ts";
import { holding } from "./turns.ts";

/*
 * A schedule whose runs wait for each other has a lane for itself, `schedule:<name>`, in which one message is in hand at a
 * time. `flow` has the field `own:<lane>` for it, whatever flow users set or clear, and `lane:<lane>`, what it may. So the
 * queue is in lanes. If the user's flow has none, `only` is set: then nothing but these runs, and retries, has turns. All
 * others go as if there were no lanes.
 */

/** What such a lane may. */
const ONE_IN_HAND = "0 0 1 1";

/** `waitsForRuns(member)`: whether a delayed message is a run that waits for others, by bit 2 of its flags; see `occurrence.ts`. */
export const waitsForRuns = defineFragment({
  lua: /* lua */ `
local function waitsForRuns(member)
  local head = 9 + (member:byte(1) or 0)
  if #member < head then return false end
  local at = head + struct.unpack("<I8", member, head - 7) + 1
  if at > #member or member:byte(at) ~= 255 then return false end
  return member:byte(at + 2) == 9 and (member:byte(at + 15) or 0) >= 4
end
`,
});

/**
 * `lateRuns(members, now)`: of the lanes of these messages that are such runs, the first turns whose message is too late by
 * its condition, as tables with a `turn` and a `lane` of their own. They would leave when the lane goes on, but that may take as long as a run, and
 * until then they would be more and more.
 */
export const lateRuns = defineFragment({
  keys: ["room", "turns"],
  needs: [deadlineOf, idOf, turnBytes, unpackMember, waitsForRuns],
  lua: /* lua */ `
local function lateRuns(members, now)
  local late, isKnown = {}, {}
  for _, member in ipairs(members) do
    local lane = waitsForRuns(member) and laneIn(select(4, unpackMember(member)))
    if lane and not isKnown[lane] then
      isKnown[lane] = true
      local prefix = lanePrefix(lane)
      local first = redis.call("ZRANGE", turns, "[" .. prefix, "(" .. prefix .. "\\255", "BYLEX", "LIMIT", 0, 10)
      for _, turn in ipairs(first) do
        local address, group = turnParts(turn)
        local kept = address and group == "" and redis.call("HGET", room, idOf(address))
        local within = kept and select(6, unpackMember(kept:sub(9)))
        if within and now / 1000 > deadlineOf(address) + within then
          late[#late + 1] = { turn = turn, lane = { slots = 1, moved = 0 } }
        end
      end
    end
  end
  return late
end
`,
});

/**
 * `giveLane(lane)`: gives a schedule its lane; returns 1, or nothing if it has it. May raise Redis's error: then nothing has
 * changed.
 * `takeLane(lane, now)`: takes it away. What waits in it becomes ready.
 * `runsIn(lane, most)`: the messages that wait in it, some more than `most` at most; no retries.
 * `withdrawRuns(members)`: removes these, and their keys.
 */
export const ownLanes = defineFragment({
  keys: ["flow", "room", "turns", "hands", "businessKeys"],
  needs: [holding, idOf, keysOf, leaveRoom, turnBytes, wakeUp],
  lua: /* lua */ `
local function giveLane(lane)
  local found = redis.call("HMGET", flow, "own:" .. lane, "kind", "target")
  if found[1] then return nil end
  local fields = { "own:" .. lane, "1", "lane:" .. lane, "${ONE_IN_HAND}", "own", "1", "slots", "1" }
  if found[2] ~= "lanes" or found[3] then
    for _, value in ipairs({ "kind", "lanes", "only", "1", "ahead", "1e15" }) do fields[#fields + 1] = value end
  end
  redis.call("HSET", flow, unpack(fields))
  if found[3] then redis.pcall("HDEL", flow, "target") end
  return 1
end
local function takeLane(lane, now)
  if redis.call("HDEL", flow, "own:" .. lane) == 0 then return end
  redis.call("HDEL", flow, "lane:" .. lane)
  goOn(lane, now)
  local cursor, hasOthers, hasOwn, hasSlots = "0", false, false, false
  repeat
    local page = redis.call("HSCAN", flow, cursor, "COUNT", 1000)
    cursor = page[1]
    for i = 1, #page[2], 2 do
      local name, isSome = page[2][i], page[2][i + 1]:sub(-2) ~= " 0"
      if name:sub(1, 4) == "own:" then hasOthers = true end
      if name:sub(1, 5) == "lane:" then hasOwn = true end
      if (name == "lane" or name:sub(1, 5) == "lane:") and isSome then hasSlots = true end
    end
  until cursor == "0"
  local found = redis.call("HMGET", flow, "only", "step")
  local waits = redis.call("EXISTS", room, turns) > 0
  if waits then
    redis.call("HSET", flow, "look", string.format("%.0f", math.floor(now / 1000)))
    wakeUp(0)
  end
  if hasOthers then return end
  if found[1] and waits then
    redis.call("HSET", flow, "target", found[2] and "paced" or "none")
    redis.call("HDEL", flow, "only", "own", "slots")
  elseif found[1] and found[2] then
    redis.call("HSET", flow, "kind", "paced")
    redis.call("HDEL", flow, "only", "own", "slots", "ahead", "cursor")
  elseif found[1] then
    redis.call("UNLINK", flow)
  else
    if not hasOwn then redis.call("HDEL", flow, "own") end
    if not hasSlots then redis.call("HDEL", flow, "slots") end
  end
  if found[1] or not hasSlots then redis.call("UNLINK", hands) end
end
local function runsIn(lane, most)
  local prefix, members, from, page = lanePrefix(lane), {}, 0, nil
  repeat
    page = redis.call("ZRANGE", turns, "[" .. prefix, "(" .. prefix .. "\\255", "BYLEX", "LIMIT", from, 100)
    local ids = {}
    for _, turn in ipairs(page) do
      local address, group = turnParts(turn)
      if address and group == "" then ids[#ids + 1] = idOf(address) end
    end
    for _, kept in ipairs(#ids > 0 and redis.call("HMGET", room, unpack(ids)) or {}) do
      if kept then members[#members + 1] = kept:sub(9) end
    end
    from = from + #page
  until #page < 100 or #members >= most
  return members
end
local function withdrawRuns(members)
  local freed = keysOf(members)
  leaveRoom(members)
  if #freed > 0 then redis.pcall("HDEL", businessKeys, unpack(freed)) end
end
`,
});
