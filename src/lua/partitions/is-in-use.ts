import { asFlag } from "../reply.ts";
import { defineScript } from "../script.ts";

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
