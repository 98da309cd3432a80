import { asInstant, clock } from "../../fragments/clock.ts";
import { deadlineAfter } from "../../fragments/deadline-after.ts";
import { earliestDue } from "../../fragments/earliest-due.ts";
import { failure } from "../../fragments/failed/failure.ts";
import { retry } from "../../fragments/failed/retry.ts";
import { settle } from "../../fragments/stream/settle.ts";
import { asFlags, asRow } from "../../reply.ts";
import { defineScript } from "../../script.ts";

export interface RetryLaterReply {
  /** The server's clock (epoch ms), to the microsecond. */
  readonly serverTime: number;
  /** For each row whether it was in flight for this consumer, and waits now. */
  readonly settled: readonly boolean[];
}

/**
 * Lets entries wait for `delay` milliseconds and come back to this group alone: failure, new deadline and
 * acknowledgement at once. So a message is in flight or waits, never both and never neither.
 *
 * `own` (1 or 0): whether the entry is for this group only. `counted` (1 or 0): whether the delivery counts as an
 * attempt, which has failed for `reason`; the message keeps that. `heldCount`: about how many entries are in flight for
 * the consumer.
 *
 * An entry whose data are gone is only acknowledged: false. If Redis refuses a write the script fails, and those
 * before it wait. A message that waits already, for this group, waits as the last row says.
 */
export const retryLater = defineScript({
  name: "retry-later",
  keys: ["stream", "timeouts", "retries", "retrying"],
  args: ["channel", "group", "consumer", "heldCount"],
  each: ["entry", "own", "delay", "counted", "reason"],
  needs: [clock, deadlineAfter, earliestDue, failure, retry, settle],
  lua: /* lua */ `
local now = clock()
local ids, isOwn, delays, failures = {}, {}, {}, {}
for each row do
  ids[#ids + 1] = entry
  isOwn[entry] = own == "1"
  delays[#delays + 1] = delay
  failures[#failures + 1] = counted == "1" and reason
end
-- Before anything is written: somebody else's key fails here.
local earliest = earliestDue() or math.huge
local soonest = math.huge
local settled, refused = settle(group, consumer, heldCount, ids, isOwn, function(entry, i)
  if failures[i] then countFailure(entry, failures[i], now) end
  local name = retryName(entry.a, group)
  local deadline = deadlineAfter(now / 1000, delays[i])
  local isNew = redis.pcall("HSET", retrying, name, packRetry(entry))
  if type(isNew) == "table" then return isNew end
  local done = redis.pcall("ZADD", retries, deadline, name)
  if type(done) == "table" then
    if isNew == 1 then redis.call("HDEL", retrying, name) end
    return done
  end
  soonest = math.min(soonest, deadline)
  return done
end)
-- Publish for a new head only. Only that can be due before the timers that are armed, and a Java
-- client that hears a later time than its own head's would cancel its timer for that.
if soonest < earliest then redis.call("PUBLISH", channel, soonest) end
return refused or { now, settled }
`,
  reply: (raw): RetryLaterReply => asRow(raw, { serverTime: asInstant, settled: asFlags }),
});
