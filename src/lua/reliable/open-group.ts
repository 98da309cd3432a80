import { asFlag } from "../reply.ts";
import { defineScript } from "../script.ts";

/**
 * Creates a consumer group and its stream where they are missing; returns whether the group was created. A group that
 * exists is not changed. `start`: the id behind which a new group begins, such as "0" for all entries or "$" for
 * those to come.
 *
 * A new stream makes the queue reliable, so a message on `channel` makes every process look again.
 */
export const openGroup = defineScript({
  name: "open-group",
  keys: ["stream"],
  args: ["channel", "group", "start"],
  lua: /* lua */ `
local isNew = redis.call("EXISTS", stream) == 0
local made = redis.pcall("XGROUP", "CREATE", stream, group, start, "MKSTREAM")
if made.err then
  -- Redis 6.2 begins the error with a minus.
  if made.err:find("^%-?BUSYGROUP") then return 0 end
  return made
end
-- A refused PUBLISH does no harm: the other processes find the stream by themselves.
if isNew then redis.pcall("PUBLISH", channel, "0") end
return 1
`,
  reply: asFlag,
});
