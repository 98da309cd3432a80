import { addresses, deadBelow } from "./fragments.ts";
import { asNumber, defineScript } from "./script.ts";

/**
 * One bounded step of keeping the insertion-order LIST short; answers whether there is more to do.
 *
 * Messages leave their element behind in the LIST (a removal from its middle would cost O(N)). So
 * dead elements are trimmed from its head; and when the LIST has grown past twice its live elements
 * plus 2000, it is compacted: step by step, the elements that are not surely dead go from its head
 * to the compacted list, and when the LIST has been emptied the compacted list becomes the LIST.
 * Meanwhile the insertion order is: compacted list, then LIST. Any process may take the next step,
 * and a crash between two steps loses nothing.
 *
 * A compaction has to leave the elements of messages that were cancelled before their deadline. It
 * remembers how many these `ghosts` are, and the next compaction waits until as many more are dead:
 * without that, a queue of many cancelled messages would be compacted over and over.
 */
export const tidy = defineScript({
  name: "tidy",
  keys: ["timeouts", "order", "compacted", "ghosts", "index"],
  args: ["step"],
  fragments: [addresses, deadBelow],
  lua: /* lua */ `
local head = redis.call("ZRANGE", timeouts, 0, 0, "WITHSCORES")
if not head[1] then
  redis.call("UNLINK", order, compacted, ghosts, index)
  return 0
end
local isDead = deadBelow(head[1], tonumber(head[2]))
local elements = redis.call("LRANGE", order, 0, step - 1)
if redis.call("EXISTS", compacted) == 0 then
  local dead = 0
  while elements[dead + 1] and isDead(elements[dead + 1]) do dead = dead + 1 end
  if dead > 0 then redis.call("LTRIM", order, dead, -1) end
  if dead == tonumber(step) then return 1 end
  local kept = redis.call("ZCARD", timeouts) + (redis.call("GET", ghosts) or 0)
  if redis.call("LLEN", order) <= 2 * kept + 2000 then return 0 end
  elements = redis.call("LRANGE", order, 0, step - 1)
end
local alive = {}
for _, element in ipairs(elements) do
  if not isDead(element) then alive[#alive + 1] = element end
end
-- Copied before they are removed: if the push is refused, nothing has happened.
if #alive > 0 then redis.call("RPUSH", compacted, unpack(alive)) end
redis.call("LTRIM", order, #elements, -1)
if redis.call("EXISTS", order) == 1 then return 1 end
if redis.call("EXISTS", compacted) == 1 then redis.call("RENAME", compacted, order) end
local live = redis.call("ZCARD", timeouts)
local left = redis.call("LLEN", order) - live
-- A few are messages that were moved since they were copied.
if left > 1000 + live / 4 then redis.call("SET", ghosts, left) else redis.call("DEL", ghosts) end
-- It may have grown meanwhile: the next step looks.
return 1
`,
  reply: (raw) => asNumber(raw) === 1,
});
