import { info } from "../fragments/stream/info.ts";
import { asNumber } from "../reply.ts";
import { defineScript } from "../script.ts";

/**
 * Removes what an empty partition leaves behind that has gone: elements of the insertion order that stand for
 * nothing, groups that get nothing, the pause. Returns false, and changes nothing, if anything is in it.
 *
 * The fact stays, since it tells those who come late, and so do the numbers of the batches that have left and arrived:
 * the partition may come back.
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
  needs: [info],
  lua: /* lua */ `
if redis.call("EXISTS", timeouts, ready, quarantine, unreadable, retries) > 0 then return 0 end
if redis.call("XLEN", stream) + redis.call("XLEN", dead) + redis.call("HEXISTS", journal, "rows") > 0 then return 0 end
if redis.call("EXISTS", stream) == 1 then
  for _, fields in ipairs(redis.call("XINFO", "GROUPS", stream)) do
    if infoOf(fields).pending > 0 then return 0 end
  end
end
redis.call("DEL", order, compacted, businessKeys, paused, stream, retrying, dead)
return 1
`,
  reply: (raw) => asNumber(raw) === 1,
});
