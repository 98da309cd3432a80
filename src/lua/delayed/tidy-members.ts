import { findNext } from "../fragments/delayed/find-next.ts";
import { hasStrays } from "../fragments/delayed/has-strays.ts";
import { locate } from "../fragments/delayed/locate.ts";
import { asFlag } from "../reply.ts";
import { defineScript } from "../script.ts";

/**
 * One bounded step of making the insertion-order LIST again what Redisson makes of it, for queues with
 * `interop: "redisson"`; returns whether there is more to do.
 *
 * While all clients have that, the LIST is so anyway, and a step finds nothing to do. Clients without
 * it have left addresses, and elements of messages that have gone. As when a LIST is compacted, its
 * elements go from its head to the compacted list, step by step: the whole members of those that are
 * alive, and when the LIST has been emptied the compacted list becomes the LIST. Meanwhile Java sees
 * only the rest of it; our scripts see both.
 */
export const tidyMembers = defineScript({
  name: "tidy-members",
  keys: ["timeouts", "order", "compacted", "businessKeys"],
  args: ["step"],
  needs: [locate, findNext, hasStrays],
  lua: /* lua */ `
local live = redis.call("ZCARD", timeouts)
if live == 0 then
  redis.call("UNLINK", order, compacted, businessKeys)
  return 0
end
if redis.call("EXISTS", compacted) == 0 and not hasStrays(live) then return 0 end
-- A few at a time: they may be large.
local alive, seen, isEnough = {}, 0, false
while not isEnough do
  local elements = redis.call("LRANGE", order, seen, seen + 9)
  for _, element in ipairs(elements) do
    local member = findNext(element)
    if member then alive[#alive + 1] = member end
  end
  seen = seen + #elements
  isEnough = #elements < 10 or seen >= tonumber(step) or spent() > 60
end
-- Copied before they are removed: if the push is refused, nothing has happened.
if #alive > 0 then redis.call("RPUSH", compacted, unpack(alive)) end
redis.call("LTRIM", order, seen, -1)
if redis.call("EXISTS", order) == 1 then return 1 end
if redis.call("EXISTS", compacted) == 1 then redis.call("RENAME", compacted, order) end
return 0
`,
  reply: asFlag,
});
