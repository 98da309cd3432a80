import { remakeStream } from "../fragments/groups.ts";
import { inFlight } from "../places/in-flight.ts";
import { groupNames, groupsOf, streamId } from "../fragments/stream-info.ts";
import { asArray, asBuffer, asFlag, asNumber } from "../reply.ts";
import { defineScript } from "../script.ts";
import { wakeUp } from "../fragments/wake-up.ts";

/**
 * Creates a consumer group and its stream where they are missing; returns whether the group was created. A group that
 * exists is not changed. `start`: the id behind which a new group begins, such as "0" for all entries or "$" for
 * those to come.
 *
 * A new stream makes the queue reliable, so a message on `channel` makes every process look again. If it was deleted,
 * it gets all its groups back (`remakeStream`), and all of them begin with what is there now.
 *
 * No rollback: the other groups come first. If one is refused, the caller tries again.
 */
export const openGroup = defineScript({
  name: "open-group",
  keys: ["stream", "knownGroups", "returned"],
  args: ["channel", "group", "start"],
  needs: [groupNames, remakeStream, wakeUp],
  lua: /* lua */ `
local isNew = redis.call("EXISTS", stream) == 0
local refusal = isNew and remakeStream()
if refusal then return refusal end
local made = redis.pcall("XGROUP", "CREATE", stream, group, start, "MKSTREAM")
-- Redis 6.2 begins the error with a minus.
local isThere = made.err and made.err:find("^%-?BUSYGROUP")
if made.err and not isThere then return made end
-- A group that was destroyed is forgotten when the next one is created. A refusal, also of the names, does no harm as long
-- as the stream is there.
local isRead, names = not isThere
if isRead then isRead, names = pcall(groupNames) end
if not isRead then names = { group } end
if isRead and not isNew then redis.pcall("DEL", knownGroups) end
for _, name in ipairs(names) do redis.pcall("HSET", knownGroups, name, 1) end
if not isNew then return isThere and 0 or 1 end
-- A refusal does no harm: the other processes find the stream by themselves.
wakeUp(0)
-- It counted what came back to a stream that was deleted.
redis.pcall("DEL", returned)
return 1
`,
  reply: asFlag,
});

/** Returns the names of a stream's consumer groups; none without a stream. */
export const groups = defineScript({
  name: "groups",
  keys: ["stream"],
  args: [],
  needs: [groupNames],
  lua: /* lua */ `return groupNames()`,
  reply: (raw) => asArray(raw).map((name) => asBuffer(name).toString()),
});

/**
 * Deletes up to `limit` entries at the head of the stream that every group has finished; returns how many.
 *
 * Usually the last group that finishes an entry deletes it. But if a group is destroyed, the entries that only that
 * group still needed remain. And Redis may have refused to delete an entry that was acknowledged. Without any group
 * nothing is deleted: the first one is given everything.
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
