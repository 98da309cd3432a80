import { findNext } from "../fragments/delayed/find-next.ts";
import { hasStrays } from "../fragments/delayed/has-strays.ts";
import { locate } from "../fragments/delayed/locate.ts";
import { asFlag } from "../reply.ts";
import { defineScript } from "../script.ts";

/**
 * One bounded step of restoring the insertion-order LIST to what Redisson expects: exactly the whole members of the
 * delayed messages. For queues with `interop: "redisson"`. Returns whether there is more to do.
 *
 * While all clients use that option, the LIST is exact anyway, and a step finds nothing to do. Clients without it leave
 * addresses, and elements of messages that have gone. As in a compaction, the whole members of live messages move from
 * the head of the LIST to the compacted list, step by step, and once the LIST is empty, the compacted list becomes the
 * LIST. Meanwhile Java clients see only the rest of the LIST; Delayline's scripts see both lists.
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
-- A few at a time, since each element may be large.
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
-- Check that trimming is permitted, then copy before removing: if either is refused, nothing has changed.
redis.call("LTRIM", order, 0, -1)
if #alive > 0 then redis.call("RPUSH", compacted, unpack(alive)) end
redis.call("LTRIM", order, seen, -1)
if redis.call("EXISTS", order) == 1 then return 1 end
if redis.call("EXISTS", compacted) == 1 then redis.call("RENAME", compacted, order) end
return 0
`,
  reply: asFlag,
});
