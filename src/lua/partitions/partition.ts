import { claim } from "../fragments/claim.ts";
import { clock } from "../fragments/clock.ts";
import { dueZsets } from "../places/due.ts";
import { groupsOf, streamId } from "../fragments/stream-info.ts";
import { asFlag, asNumber } from "../reply.ts";
import { defineScript } from "../script.ts";

/**
 * Whether a queue holds anything (`asked` is `left`), or is in use (`used`): it holds something, is reliable or paused, has a flow,
 * or a process has transferred its messages within the last hour.
 */
export const isInUse = defineScript({
  name: "is-in-use",
  keys: [
    "quarantine",
    "unreadable",
    "ready",
    "stream",
    "dead",
    "journal",
    "planning",
    "paused",
    "flow",
    "room",
  ],
  args: ["asked"],
  needs: [claim, clock, dueZsets],
  lua: /* lua */ `
local function isMoved()
  local task, claimedAt = readClaim()
  return task and (claimedAt == 0 or clock() - claimedAt < 3600000000)
end
-- The key with the bare name may belong to another application, and be of any type.
local listed = redis.pcall("LLEN", ready)
if type(listed) ~= "number" then
  if not listed.err:find("^%-?WRONGTYPE") then return listed end
  listed = 0
end
local held = redis.call("EXISTS", quarantine, unreadable, planning, room, unpack(dueZsets)) + listed
  + redis.call("XLEN", stream) + redis.call("XLEN", dead) + redis.call("HEXISTS", journal, "rows")
if asked == "used" then held = held + redis.call("EXISTS", stream, paused, flow) + (isMoved() and 1 or 0) end
return held > 0 and 1 or 0
`,
  reply: asFlag,
});

/**
 * Deletes the keys of a removed partition that is empty: stale elements of the insertion order, consumer groups, the pause, the
 * flow and the keys of its lanes. Returns false and changes nothing if the partition holds anything. Entries that every group has
 * finished do not count: Redis refused to delete them, and the stream is no longer trimmed (see `finish`).
 *
 * The fact stays, so that Redis still refuses processes that know less. The numbers of batches that left and arrived
 * stay as well, since the partition may be used again.
 */
export const removeRemains = defineScript({
  name: "remove-remains",
  keys: [
    "order",
    "compacted",
    "businessKeys",
    "paused",
    "flow",
    "room",
    "turns",
    "lanes",
    "resting",
    "lanePaces",
    "hands",
    "ready",
    "quarantine",
    "unreadable",
    "stream",
    "knownGroups",
    "returned",
    "retrying",
    "dead",
    "journal",
    "schedules",
    "planning",
    "running",
    "once",
    "onceEnds",
  ],
  args: [],
  needs: [dueZsets, groupsOf, streamId],
  lua: /* lua */ `
if redis.call("EXISTS", ready, quarantine, unreadable, planning, room, unpack(dueZsets)) > 0 then return 0 end
if redis.call("XLEN", dead) + redis.call("HEXISTS", journal, "rows") > 0 then return 0 end
local groups, newest = groupsOf(), redis.call("XREVRANGE", stream, "+", "-", "COUNT", 1)[1]
if newest and #groups == 0 then return 0 end
for _, group in ipairs(groups) do
  if group.pending > 0 or newest and compareIds(newest[1], group["last-delivered-id"]) > 0 then return 0 end
end
redis.call("DEL", order, compacted, businessKeys, paused, flow, turns, lanes, resting, lanePaces, hands, stream, knownGroups,
  returned, retrying, dead, schedules, running, once, onceEnds)
return 1
`,
  reply: (raw) => asNumber(raw) === 1,
});
