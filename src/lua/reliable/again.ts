import { asEntry, type Entry } from "../fragments/stream/entry.ts";
import { clock } from "../fragments/clock.ts";
import { deadlineAfter } from "../fragments/deadline-after.ts";
import { failure } from "../fragments/failed/failure.ts";
import { keepInFlight } from "../fragments/stream/keep-in-flight.ts";
import { settle } from "../fragments/stream/settle.ts";
import { asArray, asNumber, type RawReply } from "../reply.ts";
import { defineScript } from "../script.ts";

/**
 * Counts a failed attempt and leaves the message in flight for this consumer, as a new entry. For strict order: the
 * consumer handles it again, before it reads another one, but not for `delay` milliseconds; see `heldBack`. Returns the
 * new entry, or undefined if the old one was not in flight for this consumer.
 *
 * Sent a second time, the script changes nothing and returns undefined, although the message is in flight for this
 * consumer.
 *
 * `own` (1 or 0): whether the entry is for this group only. `reason`: why the attempt failed; the message keeps it.
 */
export const again = defineScript({
  name: "again",
  keys: ["stream", "unreadable"],
  args: ["group", "consumer", "heldCount", "entry", "own", "delay", "reason"],
  needs: [clock, deadlineAfter, failure, keepInFlight, settle],
  lua: /* lua */ `
mayKeep(group, consumer)
local now, kept = clock(), {}
local _, refused = settle(group, consumer, heldCount, { entry }, { [entry] = own == "1" }, function(found)
  if found.g and found.g ~= group then return false end
  countFailure(found, reason, now)
  found.g, found.u = group, deadlineAfter(now / 1000, delay)
  local id = appendEntry(found)
  if type(id) == "string" then kept[1] = id end
  return id
end)
if refused then return refused end
keep(group, consumer, kept)
return { #kept, kept[1] and redis.call("XRANGE", stream, kept[1], kept[1])[1] }
`,
  reply: (raw: RawReply): Entry | undefined => {
    const [count, entry] = asArray(raw);
    return asNumber(count) === 1 ? asEntry(entry ?? null) : undefined;
  },
});
