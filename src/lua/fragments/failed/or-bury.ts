import { defineFragment } from "../../fragment.ts";
import { failure } from "./failure.ts";

/**
 * Decides whether a message dies, where no process holds its delivery any more. A process that holds a delivery
 * decides by `Held.isLast`.
 *
 * `orBury(entry, reason, now, maxDeliveries, bury, giveBack)`: counts the failed delivery, and returns `bury(reason)`
 * if the message has had `maxDeliveries`, else `giveBack()`. If `maxDeliveries` is nil, no limit is known, and the
 * message lives. `now` is what `clock()` returned.
 * `diedIn(entry)`: the reason of a delivery whose consumer has died.
 */
export const orBury = defineFragment({
  needs: [failure],
  lua: /* lua */ `
local function diedIn(entry)
  return "its consumer died in delivery " .. entry.n + 1
end
local function orBury(entry, reason, now, maxDeliveries, bury, giveBack)
  countFailure(entry, reason, now)
  if maxDeliveries and entry.n >= maxDeliveries then return bury(reason) end
  return giveBack()
end
`,
});
