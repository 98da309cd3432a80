import { deadBelow } from "../fragments/delayed/dead-below.ts";
import { findNext } from "../fragments/delayed/find-next.ts";
import { isLong } from "../fragments/delayed/is-long.ts";
import { locate } from "../fragments/delayed/locate.ts";
import { asNumber } from "../reply.ts";
import { defineScript } from "../script.ts";

/** The outcome of one step: the work that is left for the next. */
export interface TidyReply {
  /** Whether there is more to do. */
  readonly hasMore: boolean;
  /** The argument `thorough` of the next step: whether it looks elements up. */
  readonly thorough: 0 | 1;
}

/**
 * One bounded step of keeping an insertion-order LIST of addresses short.
 *
 * A message that leaves the queue leaves its element behind, since removing it from the middle of the LIST would cost
 * O(N). Steps trim dead elements from the head of the LIST. When the LIST has more than twice as many elements as there
 * are live messages, plus 2000, it is compacted: step by step, the live elements move from its head to the compacted
 * list, and once the LIST is empty, the compacted list becomes the LIST. Meanwhile the insertion order is the compacted
 * list followed by the LIST. Any process may take the next step, and a crash between two steps loses nothing.
 *
 * For most elements, one comparison shows that they are dead. It does not for ghosts: elements of messages that were
 * cancelled or rescheduled before their deadline, which may outnumber the live ones. So if a compaction leaves more
 * than one and a half times as many elements as there are messages, plus 1000, a `thorough` compaction follows, which
 * looks up every element that the comparison leaves open. Between two thorough compactions more messages leave than
 * remain, so each message that leaves pays for at most two look-ups.
 *
 * A look-up reads one member, and sometimes, among n equal deadlines, about log2(n) members. A step ends once it has
 * spent its budget on look-ups.
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
-- Check that trimming is permitted, then copy before removing: if either is refused, nothing has changed.
redis.call("LTRIM", order, 0, -1)
if #alive > 0 then redis.call("RPUSH", compacted, unpack(alive)) end
redis.call("LTRIM", order, seen, -1)
if redis.call("EXISTS", order) == 1 then return thorough == "0" and 1 or 2 end
if redis.call("EXISTS", compacted) == 1 then redis.call("RENAME", compacted, order) end
if thorough == "0" and redis.call("LLEN", order) > 1.5 * live + 1000 then return 2 end
-- The LIST may have grown meanwhile, so another step checks. But elements that a look-up found alive stay.
return thorough == "0" and 1 or 0
`,
  reply: (raw): TidyReply => {
    const next = asNumber(raw);
    return { hasMore: next > 0, thorough: next === 2 ? 1 : 0 };
  },
});
