import { asInstant, clock } from "../../fragments/clock.ts";
import { deadlineAfter } from "../../fragments/deadline-after.ts";
import { asLetterCursor, eachLetter } from "../../fragments/failed/each-letter.ts";
import { earliestDue } from "../../fragments/earliest-due.ts";
import { retry } from "../../fragments/failed/retry.ts";
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
  needs: [clock, deadlineAfter, eachLetter, earliestDue, retry],
  lua: /* lua */ `
local now = clock()
local due = deadlineAfter(now / 1000, delay)
local earliest = earliestDue() or math.huge
-- A removal of nothing comes first: when memory is full Redis refuses only the first write of a script, and never a
-- removal. A retry needs no more memory than its letter.
redis.call("XDEL", dead, "0-0")
redis.call("ZADD", retries, "XX", due, "delayline: no such member")
local redriven = 0
local cursor = eachLetter(after, last, tonumber(limit), tonumber(maxBytes), function(letter, entryId)
  if not letter.p or wanted ~= "" and letter.a ~= wanted then return end
  local name = retryName(letter.a, letter.g)
  letter.n = 0
  redis.call("HSET", retrying, name, packRetry(letter))
  redis.call("ZADD", retries, due, name)
  redis.call("XDEL", dead, entryId)
  redriven = redriven + 1
end)
-- Timers are armed for the earliest message. Only an earlier one needs a wake-up.
if redriven > 0 and due < earliest then redis.call("PUBLISH", channel, due) end
return { redriven, cursor, now }
`,
  reply: (raw) => asRow(raw, { redriven: asNumber, next: asLetterCursor, serverTime: asInstant }),
});
