import { asInstant, clock } from "../../fragments/clock.ts";
import { deadlineAfter } from "../../fragments/deadline-after.ts";
import { earliestDue } from "../../fragments/earliest-due.ts";
import { failure } from "../../fragments/failed/failure.ts";
import { putRetry } from "../../fragments/failed/put-retry.ts";
import { settle } from "../../fragments/stream/settle.ts";
import { asFlags, asRow } from "../../reply.ts";
import { defineScript } from "../../script.ts";

export interface RetryLaterReply {
  /** The server's clock (epoch ms), to the microsecond. */
  readonly serverTime: number;
  /** For each row whether the entry was in flight for this consumer, and its message is retrying now. */
  readonly settled: readonly boolean[];
}

/**
 * Makes messages retry for this group in `delay` milliseconds. The failure, the new due time and the acknowledgement
 * are one step, so a message is either in flight or retrying.
 *
 * `own` (1 or 0): whether the entry is for this group only. `counted` (1 or 0): whether the delivery counts as an
 * attempt that failed for `reason`; the message keeps the reason. `heldCount`: about how many entries the consumer
 * has in flight.
 *
 * An entry whose data are gone is only acknowledged, and returns false. If Redis refuses a write the script fails,
 * and the messages before it are retrying. A message that is already retrying for this group gets the due time of the
 * last row.
 */
export const retryLater = defineScript({
  name: "retry-later",
  keys: ["stream", "timeouts", "retries", "retrying", "unreadable"],
  args: ["channel", "group", "consumer", "heldCount"],
  each: ["entry", "own", "delay", "counted", "reason"],
  needs: [clock, deadlineAfter, earliestDue, failure, putRetry, settle],
  lua: /* lua */ `
local now = clock()
local ids, isOwn, delays, failures = {}, {}, {}, {}
for each row do
  ids[#ids + 1] = entry
  isOwn[entry] = own == "1"
  delays[#delays + 1] = delay
  failures[#failures + 1] = counted == "1" and reason
end
-- Read before anything is written: a key of a foreign type fails here.
local earliest = earliestDue() or math.huge
local soonest = math.huge
for i = 1, #ids do soonest = math.min(soonest, deadlineAfter(now / 1000, delays[i])) end
local refusal = tryRetries()
if refusal then return refusal end
local settled, refused = settle(group, consumer, heldCount, ids, isOwn, function(entry, i)
  -- Timers are armed for the earliest message, so only an earlier one needs a wake-up. A later time would even do harm: a
  -- Java client would set its timer to that time. Publish before the first write: nothing behind this can be refused.
  if soonest < earliest then
    local done = redis.pcall("PUBLISH", channel, soonest)
    if type(done) == "table" then return done end
    earliest = soonest
  end
  if failures[i] then countFailure(entry, failures[i], now) end
  return putRetry(entry, group, deadlineAfter(now / 1000, delays[i]))
end)
return refused or { now, settled }
`,
  reply: (raw): RetryLaterReply => asRow(raw, { serverTime: asInstant, settled: asFlags }),
});
