import { clock } from "../fragments/clock.ts";
import { may } from "../fragments/may.ts";
import { wakeUp } from "../fragments/wake-up.ts";
import { deadlineAfter } from "../fragments/deadline.ts";
import { endAllRests, freeing, holding, keepUsed, PAUSED } from "../places/turns.ts";
import { asFlag } from "../reply.ts";
import { defineScript } from "../script.ts";

const KEYS = ["flow", "room", "turns", "hands", "lanePaces"] as const;

const ARGS = [
  "channel",
  "kind",
  "step",
  "burst",
  "declared",
  "isEmpty",
  "ahead",
  "most",
  "lane",
  "rates",
  "slots",
] as const;

const NEEDS = [clock, endAllRests, holding, keepUsed, may, wakeUp];

/** How a flow is set. `pins`: those that are set with it, by lane; "" for one that ends. */
const SET = /* lua */ `
local refusal = wakeUp(0)
if refusal then return refusal end
local now, found = clock(), redis.call("HMGET", flow, "step", "arrival", "turn", "rates", "lane", "holds")
local before, arrival = tonumber(found[1] or nil), tonumber(found[2] or nil)
local used = 0
if before and before > 0 and arrival then used = math.max(0, arrival - now) / before end
if isEmpty == "1" then used = tonumber(burst) end
local fields = { "kind", kind }
local function set(name, value) fields[#fields + 1], fields[#fields + 2] = name, value end
if tonumber(step) > 0 then
  set("step", step)
  set("burst", burst)
  set("arrival", string.format("%.0f", now + math.min(used, burst) * step))
end
if declared ~= "" then set("declared", declared) end
local laneOf, isPaused = {}, {}
for each row do laneOf[name] = own end
local waits = redis.call("HLEN", room) + redis.call("ZCARD", turns) > 0
local old, stale, isKept, was = redis.call("HSCAN", flow, "0", "COUNT", 100000)[2], {}, {}, {}
local hasOwn = false
for k = 1, kind == "lanes" and #old or 0, 2 do
  local pinnedLane = old[k]:match("^pin:(.*)$")
  if pinnedLane and not pins[pinnedLane] then pins[pinnedLane] = old[k + 1] end
end
for pinnedLane, value in pairs(pins) do
  if value ~= "" then set("pin:" .. pinnedLane, value) end
  local words, ownStep, ownSlots = value:match("^((%S+) %S+ %S+ (%S+)) {")
  if words then
    laneOf[pinnedLane] = words
    if ownStep ~= "0" then rates = "1" end
    if ownSlots ~= "0" then slots = "1" end
  elseif value ~= "" then
    isPaused[pinnedLane] = true
    set("hold:" .. pinnedLane, "${PAUSED}")
  end
end
if next(isPaused) then set("holds", found[6] or string.format("%.0f", math.floor(now / 1000))) end
for k = 1, #old, 2 do
  local name = old[k]
  was[name] = old[k + 1]
  if name:sub(1, 4) == "own:" then
    local lane = "lane:" .. name:sub(5)
    hasOwn, isKept[name], isKept[lane], laneOf[name:sub(5)] = true, true, true, nil
  end
end
if kind ~= "lanes" and hasOwn then
  fields[2] = "lanes"
  set("only", "1")
  set("ahead", "1e15")
elseif kind ~= "lanes" and waits then
  fields[2] = "lanes"
  set("target", kind)
  set("ahead", "1e15")
elseif kind == "lanes" then
  set("ahead", ahead)
  set("lane", lane)
  if rates == "1" then set("rates", "1") end
  if most ~= "0" then set("most", most) end
  for name, words in pairs(laneOf) do set("lane:" .. name, words) end
end
if hasOwn or kind == "lanes" and next(laneOf) then set("own", "1") end
if hasOwn or kind == "lanes" and slots == "1" then set("slots", "1") end
local isNone = kind == "none" and not waits and not hasOwn
if waits then
  set("turn", found[3] or "0")
  set("look", string.format("%.0f", math.floor(now / 1000)))
end
for k = 1, isNone and 0 or #fields, 2 do isKept[fields[k]] = true end
for k = 1, #old, 2 do
  local name = old[k]
  local isHold = name:sub(1, 4) == "hold" and kind == "lanes" and was[name] ~= "${PAUSED}"
  if not isKept[name] and not isHold then stale[#stale + 1] = name end
end
may("HDEL", flow)
for from = 1, isNone and 0 or #fields, 2000 do
  redis.call("HSET", flow, unpack(fields, from, math.min(from + 1999, #fields)))
end
for from = 1, #stale, 1000 do redis.call("HDEL", flow, unpack(stale, from, math.min(from + 999, #stale))) end
-- What may be refused from here on does no harm: lanes rest longer than they have to, or a key stays.
if waits then
  pcall(endAllRests, function(name)
    local hold = kind == "lanes" and tonumber(was["hold:" .. name])
    if isPaused[name] then return ${PAUSED} end
    return hold and hold > now / 1000 and hold < ${PAUSED} and hold
  end)
  for name in pairs(isPaused) do pcall(restUntil, name, ${PAUSED}) end
end
if found[4] and rates == "1" then
  pcall(keepUsed, now, function(name) return was["lane:" .. name] or found[5] or "" end, function(name) return laneOf[name] or lane end)
end
if rates ~= "1" then redis.pcall("UNLINK", lanePaces) end
if slots ~= "1" and not hasOwn then redis.pcall("UNLINK", hands) end
`;

/**
 * Sets the flow of a queue: its `kind`, "paced", "lanes" or "none"; `step` (microseconds for each message) and `burst` of the
 * queue's rate, both 0 without one; and `declared`, what the user has set. What was used of the rate before stays used. With
 * `isEmpty` (1 or 0), all of `burst` is.
 *
 * With lanes: `ahead`, how many messages may be ready; `most`, how many may be in hand, 0 without a limit; and what the lanes
 * may, each as `step burst cost slots`, where `cost` is that of a turn in virtual time, and `slots` how many messages may be in
 * hand: `lane`, every lane, and in the rows those that have their own. `rates` and `slots` (1 or 0): whether any lane has such
 * a limit. Lanes that are held stay so, and those that are pinned, see {@link pinLane}.
 *
 * While messages wait in the waiting room, the queue keeps its lanes, without their limits; what it is to be, `target`, it
 * becomes when the last of them has gone.
 *
 * Lanes that schedules have for themselves stay, whatever is set; see `own-lanes.ts`.
 *
 * It wakes every process up first: if that is refused, nothing has changed.
 */
export const setFlow = defineScript({
  name: "set-flow",
  keys: KEYS,
  args: ARGS,
  each: ["name", "own"],
  needs: NEEDS,
  lua: `local pins = {}${SET}`,
  reply: () => undefined,
});

/**
 * Sets the flow that a queue has already, and with it what is pinned of one lane, `pinned`: its `pin`, "" to end that. Returns false,
 * and changes nothing, if the queue has another flow than the one that was `declared`. Otherwise as {@link setFlow}.
 *
 * A pin is what the lane may, as in the rows, or "paused", a space, and what the user has set, in JSON. It is in the field `pin:<lane>`,
 * which stays as long as the queue has lanes, and comes before what the flow says of the lane.
 */
export const pinLane = defineScript({
  name: "pin-lane",
  keys: KEYS,
  args: [...ARGS, "pinned", "pin"],
  each: ["name", "own"],
  needs: NEEDS,
  lua: `if redis.call("HGET", flow, "declared") ~= declared then return 0 end
local pins = { [pinned] = pin }${SET}
return 1`,
  reply: asFlag,
});

/**
 * Holds a lane for `duration` milliseconds: until then none of its messages becomes ready. A longer hold stays. Returns whether
 * the queue has lanes, or this is one of a schedule; if not, nothing has changed.
 */
export const holdLane = defineScript({
  name: "hold-lane",
  keys: ["flow"],
  args: ["name", "duration"],
  needs: [clock, deadlineAfter, holding],
  lua: /* lua */ `
local found = redis.call("HMGET", flow, "kind", "target", "only", "own:" .. name)
if found[1] ~= "lanes" or found[2] or found[3] and not found[4] then return 0 end
holdLane(name, deadlineAfter(clock() / 1000, duration))
return 1
`,
  reply: asFlag,
});

/**
 * Tells that messages of these lanes were settled, which had a slot: lets the lanes go on, and wakes whoever moves messages, if
 * any wait.
 */
export const freeSlots = defineScript({
  name: "free-slots",
  keys: ["turns"],
  args: ["channel"],
  each: ["name"],
  needs: [freeing],
  lua: /* lua */ `
local names = {}
for each row do names[#names + 1] = name end
return freeLanes(names)
`,
  reply: () => undefined,
});
