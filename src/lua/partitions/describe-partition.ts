import { groupsOf } from "../fragments/stream/groups-of.ts";
import { asNumber, asRow, asText, orNothing } from "../reply.ts";
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
