import { clock } from "../fragments/clock.ts";
import { wakeUp } from "../fragments/wake-up.ts";
import { endAllRests, keepUsed } from "../places/turns.ts";
import { defineScript } from "../script.ts";

/**
 * Sets the flow of a queue: its `kind`, "paced", "lanes" or "none"; `step` (microseconds for each message) and `burst` of the
 * queue's rate, both 0 without one; and `declared`, what the user has set. What was used of the rate before stays used. With
 * `isEmpty` (1 or 0), all of `burst` is.
 *
 * With lanes: `ahead`, how many messages may be ready; and what the lanes may, each as `step burst cost`, the cost of a turn
 * in virtual time: `lane`, every lane, and in the rows those that have their own. `rates` (1 or 0): whether any lane has a rate.
 *
 * While messages wait in the waiting room, the queue keeps its lanes, without their limits; what it is to be, `target`, it
 * becomes when the last of them has gone.
 *
 * It wakes every process up first: if that is refused, nothing has changed.
 */
export const setFlow = defineScript({
  name: "set-flow",
  keys: ["flow", "room", "turns", "lanePaces"],
  args: ["channel", "kind", "step", "burst", "declared", "isEmpty", "ahead", "lane", "rates"],
  each: ["name", "own"],
  needs: [clock, endAllRests, keepUsed, wakeUp],
  lua: /* lua */ `
local refusal = wakeUp(0)
if refusal then return refusal end
local now, found = clock(), redis.call("HMGET", flow, "step", "arrival", "turn", "rates", "lane")
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
local laneOf = {}
for each row do laneOf[name] = own end
local waits = redis.call("EXISTS", room, turns) > 0
if kind ~= "lanes" and waits then
  fields[2] = "lanes"
  set("target", kind)
  set("ahead", "1e15")
elseif kind == "lanes" then
  set("ahead", ahead)
  set("lane", lane)
  if rates == "1" then set("rates", "1") end
  for name, words in pairs(laneOf) do set("lane:" .. name, words) end
  if next(laneOf) then set("own", "1") end
end
if waits then
  set("turn", found[3] or "0")
  set("look", string.format("%.0f", math.floor(now / 1000)))
  endAllRests()
end
if found[4] and rates ~= "1" then
  redis.call("UNLINK", lanePaces)
elseif found[4] then
  local function before(name) return redis.call("HGET", flow, "lane:" .. name) or found[5] or "" end
  keepUsed(now, before, function(name) return laneOf[name] or lane end)
end
redis.call("DEL", flow)
if kind ~= "none" or waits then redis.call("HSET", flow, unpack(fields)) end
`,
  reply: () => undefined,
});
