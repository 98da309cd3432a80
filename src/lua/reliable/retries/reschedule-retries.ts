import { clock } from "../../fragments/clock.ts";
import { deadlineAfter } from "../../fragments/deadline-after.ts";
import { earliestDue } from "../../fragments/earliest-due.ts";
import { asDeadline, replied } from "../../fragments/message/replied.ts";
import { waitingFor } from "../../fragments/failed/waiting-for.ts";
import { defineScript } from "../../script.ts";

/**
 * Makes a retrying message due at another time, for every group that it waits for. Returns when it is due, for the
 * first of its groups, or undefined if it is not retrying.
 *
 * It is due in `delay` milliseconds or at `deadline`; the other argument is empty. If both are empty it is due now;
 * if it was due before, its time stays.
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
  -- A member of the ZSET without a value in the HASH is not a message. A foreign program wrote it.
  if redis.call("HEXISTS", retrying, name) == 1 then
    local own = due or math.min(dues[i], math.floor(now))
    changes[#changes + 1] = own
    changes[#changes + 1] = name
    first = math.min(first, own)
  end
end
if #changes == 0 then return false end
-- Timers are armed for the earliest message. Only an earlier one needs a wake-up. Publish first: if that is refused,
-- nothing has changed. Nobody can look before the script has ended.
redis.call("ZADD", retries, "XX", 0, "delayline: no such member")
if first < earliest then redis.call("PUBLISH", channel, first) end
redis.call("ZADD", retries, "XX", unpack(changes))
return replied(first)
`,
  reply: (raw) => (raw === null ? undefined : asDeadline(raw)),
});
