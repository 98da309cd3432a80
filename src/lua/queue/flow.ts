import { clock } from "../fragments/clock.ts";
import { wakeUp } from "../fragments/wake-up.ts";
import { defineScript } from "../script.ts";

/**
 * Sets the rate of a queue: `step` (microseconds for each message) and `burst`; `declared` is what the user has set. What was
 * used of the rate before stays used. With `isEmpty` (1 or 0), all of `burst` is.
 *
 * It wakes every process up first: if that is refused, nothing has changed.
 */
export const setFlow = defineScript({
  name: "set-flow",
  keys: ["flow"],
  args: ["channel", "step", "burst", "declared", "isEmpty"],
  needs: [clock, wakeUp],
  lua: /* lua */ `
local refusal = wakeUp(0)
if refusal then return refusal end
local now, found = clock(), redis.call("HMGET", flow, "step", "arrival")
local before, arrival = tonumber(found[1] or nil), tonumber(found[2] or nil)
local used = 0
if before and arrival then used = math.max(0, arrival - now) / before end
if isEmpty == "1" then used = burst end
arrival = now + math.min(used, burst) * step
redis.call("HSET", flow, "kind", "paced", "step", step, "burst", burst,
  "arrival", string.format("%.0f", arrival), "declared", declared)
`,
  reply: () => undefined,
});

/** Removes the rate of a queue, and wakes every process up. */
export const clearFlow = defineScript({
  name: "clear-flow",
  keys: ["flow"],
  args: ["channel"],
  needs: [wakeUp],
  lua: /* lua */ `
local refusal = wakeUp(0)
if refusal then return refusal end
redis.call("DEL", flow)
`,
  reply: () => undefined,
});
