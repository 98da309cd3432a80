import { asInstant, clock } from "../../fragments/clock.ts";
import { deadlineAfter } from "../../fragments/deadline-after.ts";
import { asLetterCursor, eachLetter } from "../../fragments/failed/each-letter.ts";
import { earliestDue } from "../../fragments/earliest-due.ts";
import { retry } from "../../fragments/failed/retry.ts";
import { asNumber, asRow } from "../../reply.ts";
import { defineScript } from "../../script.ts";

/**
 * Puts dead letters back: each waits for a retry in its own group, due in `delay` milliseconds, as if it had
 * never been delivered. `wanted` is the address of a message, or empty for all; unreadable letters stay.
 *
 * Reads the letters behind `after`, `limit` at most and about `maxBytes`. Returns how many were put back, and where
 * to go on.
 *
 * Redis rolls nothing back. So what may be refused is tried before the first letter is touched, and each letter
 * waits before it is removed: at worst there are both, and it is delivered again.
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
-- A removal of nothing in front: when memory is full Redis refuses only the first write of a script, and what is
-- put back takes up no more than the letter did.
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
-- Only what is due before all else can be due before the timers that are armed.
if redriven > 0 and due < earliest then redis.call("PUBLISH", channel, due) end
return { redriven, cursor, now }
`,
  reply: (raw) => asRow(raw, { redriven: asNumber, next: asLetterCursor, serverTime: asInstant }),
});
