import { deadBelow } from "../fragments/delayed/dead-below.ts";
import { findNext } from "../fragments/delayed/find-next.ts";
import { isLong } from "../fragments/delayed/is-long.ts";
import { locate } from "../fragments/delayed/locate.ts";
import { asNumber } from "../reply.ts";
import { defineScript } from "../script.ts";

/** Where the next step goes on. */
export interface TidyReply {
  /** Whether there is more to do. */
  readonly hasMore: boolean;
  /** What the next step is to be told: whether it looks elements up. */
  readonly thorough: 0 | 1;
}

/**
 * One bounded step of keeping an insertion-order LIST of addresses short.
 *
 * Messages leave their element behind in the LIST (a removal from its middle would cost O(N)). So
 * dead elements are trimmed from its head; and when the LIST has grown past twice the live messages
 * plus 2000, it is compacted: step by step, the elements that are not dead go from its head to the
 * compacted list, and when the LIST has been emptied the compacted list becomes the LIST. Meanwhile
 * the insertion order is: compacted list, then LIST. Any process may take the next step, and a crash
 * between two steps loses nothing.
 *
 * Most elements show by one comparison that they are dead. The ghosts do not: messages that were
 * cancelled or rescheduled before their deadline, of which a queue may have many more than live ones.
 * So where a compaction has left one and a half times as many elements as there are messages (and
 * 1000), a `thorough` one follows, which looks up what the comparison leaves open. Between two of these
 * more messages have gone than are left, so each that goes pays for two look-ups at most.
 *
 * A look-up reads a member, and among equal deadlines now and then about log2 of their number. A step
 * ends when it has spent its budget on them.
 */
export const tidyAddresses = defineScript({
  name: "tidy-addresses",
  keys: ["timeouts", "order", "compacted", "businessKeys"],
  args: ["step", "thorough"],
  needs: [locate, findNext, deadBelow, isLong],
  lua: /* lua */ `
local head = redis.call("ZRANGE", timeouts, 0, 0, "WITHSCORES")
if not head[1] then
  redis.call("UNLINK", order, compacted, businessKeys)
  return 0
end
local isDead = deadBelow(head[1], tonumber(head[2]))
local elements = redis.call("LRANGE", order, 0, step - 1)
local live = redis.call("ZCARD", timeouts)
if redis.call("EXISTS", compacted) == 0 then
  local dead = 0
  while elements[dead + 1] and isDead(elements[dead + 1]) do dead = dead + 1 end
  if dead > 0 then redis.call("LTRIM", order, dead, -1) end
  if dead == tonumber(step) then return 1 end
  if thorough == "0" and not isLong(live) then return 0 end
  elements = redis.call("LRANGE", order, 0, step - 1)
end
local alive, seen = {}, 0
for i, element in ipairs(elements) do
  if not isDead(element) and (thorough == "0" or findNext(element)) then alive[#alive + 1] = element end
  seen = i
  if spent() > 60 then break end
end
-- Copied before they are removed: if the push is refused, nothing has happened.
if #alive > 0 then redis.call("RPUSH", compacted, unpack(alive)) end
redis.call("LTRIM", order, seen, -1)
if redis.call("EXISTS", order) == 1 then return thorough == "0" and 1 or 2 end
if redis.call("EXISTS", compacted) == 1 then redis.call("RENAME", compacted, order) end
if thorough == "0" and redis.call("LLEN", order) > 1.5 * live + 1000 then return 2 end
-- It may have grown meanwhile: the next step looks. But what a look-up leaves stays.
return thorough == "0" and 1 or 0
`,
  reply: (raw): TidyReply => {
    const next = asNumber(raw);
    return { hasMore: next > 0, thorough: next === 2 ? 1 : 0 };
  },
});
