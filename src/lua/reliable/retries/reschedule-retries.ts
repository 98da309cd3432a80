import { clock } from "../../fragments/clock.ts";
import { deadlineAfter } from "../../fragments/deadline-after.ts";
import { earliestDue } from "../../fragments/earliest-due.ts";
import { asDeadline, replied } from "../../fragments/message/replied.ts";
import { waitingFor } from "../../fragments/failed/waiting-for.ts";
import { defineScript } from "../../script.ts";

/**
 * Makes a message that waits for a retry due at another time, in every group that waits for it.
 *
 * It is due in `delay` milliseconds or at `deadline`; the other one is empty. If both are, it is due now,
 * or stays due if it was.
 *
 * Returns when it is due, the first of several groups', or nil if it does not wait.
 */
export const rescheduleRetries = defineScript({
  name: "reschedule-retries",
  keys: ["stream", "timeouts", "retries", "retrying"],
  args: ["channel", "wanted", "delay", "deadline"],
  needs: [clock, deadlineAfter, earliestDue, replied, waitingFor],
  lua: /* lua */ `
local names, dues = waitingFor(wanted)
local now = clock() / 1000
local earliest = earliestDue()
local due = tonumber(deadline) or delay ~= "" and deadlineAfter(now, delay)
local first, changes = math.huge, {}
for i, name in ipairs(names) do
  -- A name by itself, which somebody else wrote, is no message.
  if redis.call("HEXISTS", retrying, name) == 1 then
    local own = due or math.min(dues[i], math.floor(now))
    changes[#changes + 1] = own
    changes[#changes + 1] = name
    first = math.min(first, own)
  end
end
if #changes == 0 then return false end
redis.call("ZADD", retries, "XX", unpack(changes))
-- Only what is due before all else can be due before the timers that are armed.
if first < earliest then redis.call("PUBLISH", channel, first) end
return replied(first)
`,
  reply: (raw) => (raw === null ? undefined : asDeadline(raw)),
});
