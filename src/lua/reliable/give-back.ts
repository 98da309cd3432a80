import { clock } from "../fragments/clock.ts";
import { failure } from "../fragments/failed/failure.ts";
import { heldBack } from "../fragments/stream/held-back.ts";
import { putRetry } from "../fragments/failed/put-retry.ts";
import { settle } from "../fragments/stream/settle.ts";
import { asFlags } from "../reply.ts";
import { defineScript } from "../script.ts";

/**
 * Makes messages ready again, for this group only; returns for each entry whether it was in flight for this consumer.
 * Redis cannot undo a delivery, so the message is appended as a new entry and the old one is finished.
 *
 * `own` (1 or 0): whether the entry is for this group only. `counted` (1 or 0): whether the delivery counts as an
 * attempt that failed for `reason`; the message keeps the reason. `heldCount`: about how many entries the consumer
 * has in flight.
 *
 * A message that is held back, and whose delivery does not count, becomes a retry that is due when its pause is over.
 *
 * An entry whose data are gone is only acknowledged, one in a foreign format is set aside (see `settle`), and both
 * return false. If Redis refuses to append an entry the script fails, and those before it have been given back.
 */
export const giveBackEntries = defineScript({
  name: "give-back-entries",
  keys: ["stream", "retries", "retrying", "unreadable"],
  args: ["channel", "group", "consumer", "heldCount"],
  each: ["entry", "own", "counted", "reason"],
  needs: [clock, failure, heldBack, putRetry, settle],
  lua: /* lua */ `
local ids, isOwn, failures = {}, {}, {}
for each row do
  ids[#ids + 1] = entry
  isOwn[entry] = own == "1"
  failures[#failures + 1] = counted == "1" and reason
end
local now
local settled, refused = settle(group, consumer, heldCount, ids, isOwn, function(entry, i)
  -- An entry for another group, whose acknowledgement was lost: it is only acknowledged.
  if entry.g and entry.g ~= group then return false end
  if failures[i] or entry.u then now = now or clock() end
  if failures[i] then
    countFailure(entry, failures[i], now)
    entry.u = nil
  elseif entry.u and isHeldBack(entry, now) then
    return putHeldBack(entry, group, channel)
  end
  entry.g = group
  return appendEntry(entry)
end)
return refused or settled
`,
  reply: asFlags,
});
