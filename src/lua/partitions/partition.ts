import { groupsOf } from "../fragments/stream.ts";
import { asFlag, asNumber, asRow, asText, orNothing } from "../reply.ts";
import { defineScript } from "../script.ts";

/**
 * Returns how many messages a partition holds in each state, and the process that consumes it exclusively. O(1) for
 * each consumer group.
 *
 * In a stream with groups, an entry is ready once for each group, except where it is in flight. An entry that only some
 * of the groups have finished counts for all of them.
 */
export const describePartition = defineScript({
  name: "describe-partition",
  keys: ["timeouts", "retries", "ready", "stream", "holder"],
  args: [],
  needs: [groupsOf],
  lua: /* lua */ `
local length = redis.call("XLEN", stream)
local groups = length > 0 and groupsOf() or {}
local inFlight = 0
for _, group in ipairs(groups) do inFlight = inFlight + group.pending end
return {
  redis.call("ZCARD", timeouts) + redis.call("ZCARD", retries),
  redis.call("LLEN", ready) + math.max(0, length * math.max(1, #groups) - inFlight),
  inFlight,
  redis.call("HGET", holder, "holder"),
}
`,
  reply: (raw) =>
    asRow(raw, {
      delayed: asNumber,
      ready: asNumber,
      inFlight: asNumber,
      holder: orNothing(asText),
    }),
});

/**
 * Whether a queue holds anything (`asked` is `left`), or is in use (`used`): it holds something, is reliable or paused,
 * or a process has transferred its messages within the last hour.
 */
export const isInUse = defineScript({
  name: "is-in-use",
  keys: [
    "timeouts",
    "retries",
    "quarantine",
    "unreadable",
    "ready",
    "stream",
    "dead",
    "journal",
    "mover",
    "paused",
  ],
  args: ["asked"],
  lua: /* lua */ `
-- The key with the bare name may belong to another application, and be of any type.
local listed = redis.pcall("LLEN", ready)
if type(listed) ~= "number" then
  if not listed.err:find("^%-?WRONGTYPE") then return listed end
  listed = 0
end
local held = redis.call("EXISTS", timeouts, retries, quarantine, unreadable) + listed
  + redis.call("XLEN", stream) + redis.call("XLEN", dead) + redis.call("HEXISTS", journal, "rows")
if asked == "used" then held = held + redis.call("EXISTS", stream, mover, paused) end
return held > 0 and 1 or 0
`,
  reply: asFlag,
});

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
