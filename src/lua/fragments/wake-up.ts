import { defineFragment } from "../fragment.ts";

/**
 * `wakeUp(due[, head])`: tells whoever moves messages to arm its timer for `due` (epoch ms), or with 0 to look now, as
 * Java clients do, too. With `head`, only if it is later: timers are armed for it, and a Java client that heard of a later
 * deadline would cancel its timer for the head. Returns Redis's error if it refuses; else nil.
 *
 * No client can look before the script has ended, so the wake-up may precede the change that it announces: if it is refused,
 * nothing has changed yet. Reads the script's argument `channel`.
 */
export const wakeUp = defineFragment({
  lua: /* lua */ `
local function wakeUp(due, head)
  if head and head <= due then return nil end
  -- Whoever listens expects a legal deadline.
  local woken = redis.pcall("PUBLISH", channel, math.max(due, 0))
  return type(woken) == "table" and woken or nil
end
`,
});
