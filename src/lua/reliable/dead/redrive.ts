import { asInstant, clock } from "../../fragments/clock.ts";
import { deadlineAfter } from "../../fragments/deadline-after.ts";
import { asLetterCursor, eachLetter } from "../../fragments/failed/each-letter.ts";
import { earliestDue } from "../../fragments/earliest-due.ts";
import { putRetry } from "../../fragments/failed/put-retry.ts";
import { asNumber, asRow } from "../../reply.ts";
import { defineScript } from "../../script.ts";

/**
 * Makes dead messages retry: each becomes a retry of its group, due in `delay` milliseconds, as if it had never been
 * delivered. `wanted` is the address of a message, or empty for all. Unreadable letters stay.
 *
 * Looks at up to `limit` letters and about `maxBytes` behind `after`. Returns how many were redriven, and the next
 * cursor.
 *
 * Redis rolls nothing back. So the script tries everything that may be refused before it touches the first letter,
 * and adds each retry before it removes the letter. At worst there are both, and the message is delivered once more.
 */
export const redrive = defineScript({
  name: "redrive",
  keys: ["dead", "timeouts", "retries", "retrying"],
  args: ["channel", "wanted", "after", "last", "limit", "maxBytes", "delay"],
  needs: [clock, deadlineAfter, eachLetter, earliestDue, putRetry],
  lua: /* lua */ `
local now = clock()
local due = deadlineAfter(now / 1000, delay)
local earliest = earliestDue() or math.huge
-- A removal of nothing comes first: when memory is full Redis refuses only the first write of a script, and never a
-- removal. A retry needs no more memory than its letter.
redis.call("XDEL", dead, "0-0")
local refusal = tryRetries()
if refusal then return refusal end
local chosen = {}
local cursor = eachLetter(after, last, tonumber(limit), tonumber(maxBytes), function(letter, entryId)
  if not letter.p or wanted ~= "" and letter.a ~= wanted then return end
  letter.n = 0
  chosen[#chosen + 1] = { letter, entryId }
end)
-- Timers are armed for the earliest message. Only an earlier one needs a wake-up.
if #chosen > 0 and due < earliest then redis.call("PUBLISH", channel, due) end
for _, one in ipairs(chosen) do
  local done = putRetry(one[1], one[1].g, due)
  if type(done) == "table" then return done end
  redis.call("XDEL", dead, one[2])
end
return { #chosen, cursor, now }
`,
  reply: (raw) => asRow(raw, { redriven: asNumber, next: asLetterCursor, serverTime: asInstant }),
});
