import { asArray, asNumber } from "../reply.ts";
import { defineScript } from "../script.ts";

/**
 * Counts the messages and retries that fall due in each of `count` spans of `step` milliseconds, from `from` on (epoch
 * ms). O(log N) for each span, about 2 us.
 */
export const forecast = defineScript({
  name: "forecast",
  keys: ["timeouts", "retries"],
  args: ["from", "step", "count"],
  lua: /* lua */ `
local counts = {}
local hasRetries = redis.call("EXISTS", retries) == 1
for i = 0, count - 1 do
  local first = string.format("%.17g", from + i * step)
  local last = string.format("(%.17g", from + (i + 1) * step)
  local due = redis.call("ZCOUNT", timeouts, first, last)
  if hasRetries then due = due + redis.call("ZCOUNT", retries, first, last) end
  counts[i + 1] = due
end
return counts
`,
  reply: (raw) => asArray(raw).map(asNumber),
});
