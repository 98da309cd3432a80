import { groupsOf } from "../fragments/stream/groups-of.ts";
import { asNumber } from "../reply.ts";
import { defineScript } from "../script.ts";

/**
 * Deletes the keys of a removed partition that is empty: stale elements of the insertion order, consumer groups, the
 * pause. Returns false and changes nothing if the partition holds anything.
 *
 * The fact stays, so that Redis still refuses processes that know less. The numbers of batches that left and arrived
 * stay as well, since the partition may be used again.
 */
export const removeRemains = defineScript({
  name: "remove-remains",
  keys: [
    "timeouts",
    "order",
    "compacted",
    "businessKeys",
    "paused",
    "ready",
    "quarantine",
    "unreadable",
    "stream",
    "retries",
    "retrying",
    "dead",
    "journal",
  ],
  args: [],
  needs: [groupsOf],
  lua: /* lua */ `
if redis.call("EXISTS", timeouts, ready, quarantine, unreadable, retries) > 0 then return 0 end
if redis.call("XLEN", stream) + redis.call("XLEN", dead) + redis.call("HEXISTS", journal, "rows") > 0 then return 0 end
for _, group in ipairs(groupsOf()) do
  if group.pending > 0 then return 0 end
end
redis.call("DEL", order, compacted, businessKeys, paused, stream, retrying, dead)
return 1
`,
  reply: (raw) => asNumber(raw) === 1,
});
