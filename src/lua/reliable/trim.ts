import { inFlight } from "../fragments/stream/in-flight.ts";
import { groupsOf } from "../fragments/stream/groups-of.ts";
import { streamId } from "../fragments/stream/stream-id.ts";
import { asNumber } from "../reply.ts";
import { defineScript } from "../script.ts";

/**
 * Deletes up to `limit` entries at the head of the stream that every group has finished; returns how many.
 *
 * Usually the last group that finishes an entry deletes it. But if a group is destroyed, nobody deletes the entries
 * that only that group still needed. And Redis may have refused to delete an entry that was acknowledged. Without any
 * group nothing is deleted: the first one is given everything.
 */
export const trim = defineScript({
  name: "trim",
  keys: ["stream"],
  args: ["limit"],
  needs: [groupsOf, inFlight, streamId],
  lua: /* lua */ `
local groups = groupsOf()
if #groups == 0 then return 0 end
local firsts, lasts = {}, {}
for i, group in ipairs(groups) do
  lasts[i] = group["last-delivered-id"]
  local first = inFlight(group.name, "-", "+", 1)[1]
  firsts[i] = first and first[1] or false
end
local function isFinished(id)
  for i, last in ipairs(lasts) do
    if compareIds(id, last) > 0 or firsts[i] and compareIds(id, firsts[i]) >= 0 then return false end
  end
  return true
end
local finished = {}
for _, entry in ipairs(redis.call("XRANGE", stream, "-", "+", "COUNT", limit)) do
  if not isFinished(entry[1]) then break end
  finished[#finished + 1] = entry[1]
end
if #finished > 0 then redis.call("XDEL", stream, unpack(finished)) end
return #finished
`,
  reply: asNumber,
});
