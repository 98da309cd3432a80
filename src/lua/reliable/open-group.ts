import { asFlag } from "../reply.ts";
import { defineScript } from "../script.ts";

/**
 * Makes a consumer group, and the stream with it, where they are missing; replies whether the group was made.
 * `start`: the id after which it begins, "0" (with the first entry) or "$" (with the next one). A group that is
 * there stays as it is.
 *
 * A new stream makes the queue reliable. So every process is told on `channel` to look again.
 */
export const openGroup = defineScript({
  name: "open-group",
  keys: ["stream"],
  args: ["channel", "group", "start"],
  lua: /* lua */ `
local isNew = redis.call("EXISTS", stream) == 0
local made = redis.pcall("XGROUP", "CREATE", stream, group, start, "MKSTREAM")
if made.err then
  -- Redis 6.2 puts a minus in front.
  if made.err:find("^%-?BUSYGROUP") then return 0 end
  return made
end
-- Who may not publish has made the group all the same; the others find the stream by themselves.
if isNew then redis.pcall("PUBLISH", channel, "0") end
return 1
`,
  reply: asFlag,
});
