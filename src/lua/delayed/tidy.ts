import { defineFragment } from "../fragment.ts";
import { compareBytes, deadlineOf, isAddress } from "../fragments/address.ts";
import { isHeld } from "../places/key-index.ts";
import { findNext, spending } from "../places/delayed.ts";
import { countDue } from "../places/due.ts";
import { asFlag, asNumber, asText, type RawReply } from "../reply.ts";
import { defineScript } from "../script.ts";
import { may } from "../fragments/may.ts";

/** `isLong(live)`: whether the LIST of a queue with `live` messages has to be compacted. */
const isLong = defineFragment({
  keys: ["order"],
  lua: /* lua */ `
local function isLong(live)
  return redis.call("LLEN", order) > 2 * live + 2000
end
`,
});

/**
 * `hasStrays(live)`: whether the LIST of a queue with `interop: "redisson"` and `live` messages shows elements that
 * Redisson would not have written: more elements than messages, or an address at one of its ends. Addresses between
 * members stay unnoticed until one of their messages has left.
 */
const hasStrays = defineFragment({
  keys: ["order"],
  needs: [isAddress],
  lua: /* lua */ `
local function hasStrays(live)
  if redis.call("LLEN", order) > live then return true end
  local first, last = redis.call("LINDEX", order, 0), redis.call("LINDEX", order, -1)
  return first and (isAddress(first) or isAddress(last))
end
`,
});

/**
 * `deadBelow(head, headDeadline)`: a function that returns whether an element of the insertion order is certainly dead,
 * given the head of the ZSET and its deadline.
 *
 * Due messages leave in the order (deadline, member), so an address below the head's is dead: one comparison, whatever
 * the size of the queue. An address above it may belong to a cancelled message, but counts as alive here. A member that
 * a Java client wrote is looked up.
 */
export const deadBelow = defineFragment({
  keys: ["timeouts"],
  needs: [compareBytes, deadlineOf, isAddress],
  lua: /* lua */ `
local function deadBelow(head, headDeadline)
  local comparable = head:byte(1) == 16 and #head >= 25
  return function(element)
    if not isAddress(element) then return not redis.call("ZSCORE", timeouts, element) end
    local deadline = deadlineOf(element)
    if deadline ~= headDeadline then return deadline < headDeadline end
    return comparable and compareBytes(element, 9, head, 2, 16) < 0
  end
end
`,
});

/** `isUntidy(live)`: whether a step would find something to do in the addresses of a queue with `live` messages. O(1). */
const isUntidy = defineFragment({
  keys: ["timeouts", "order"],
  needs: [isLong, deadBelow],
  lua: /* lua */ `
local function isUntidy(live)
  if isLong(live) then return true end
  local head, first = redis.call("ZRANGE", timeouts, 0, 0, "WITHSCORES"), redis.call("LINDEX", order, 0)
  return first and deadBelow(head[1], tonumber(head[2]))(first)
end
`,
});

/** `dropAll()`: drops the insertion order of a queue without delayed messages, and the index, unless others may use it. */
const dropAll = defineFragment({
  keys: ["timeouts", "order", "compacted", "businessKeys"],
  needs: [countDue],
  lua: /* lua */ `
local function dropAll()
  redis.call("UNLINK", order, compacted, countDue(timeouts) > 0 and order or businessKeys)
end
`,
});

/** `tidyEmpty()`: the same if the queue is empty. Never raises an error. */
export const tidyEmpty = defineFragment({
  keys: ["timeouts"],
  needs: [dropAll],
  lua: /* lua */ `
local function tidyEmpty()
  if redis.pcall("ZCARD", timeouts) == 0 then pcall(dropAll) end
end
`,
});

/** The parts of a queue that need tidying. */
export interface Untidy {
  /** The insertion order. */
  readonly order: boolean;
  /** The index of business keys. */
  readonly businessKeys: boolean;
  /** What is remembered of messages that were offered with `once`. */
  readonly once: boolean;
}

/**
 * `untidy(elementsAre)`: where a step of tidying would find something to do: 1 in the insertion order, 2 in the index, 3
 * in both, 0 in neither. O(1), except for reading the head of the ZSET. {@link asUntidy} reads the number.
 *
 * Runs behind a transfer, so it must not raise an error. If a key has the wrong type it returns 3, and the step of
 * tidying reports the error.
 */
export const untidy = defineFragment({
  keys: ["timeouts", "order", "compacted", "businessKeys"],
  needs: [countDue, hasStrays, isUntidy],
  lua: /* lua */ `
local function untidy(elementsAre)
  local function look()
    local live = redis.call("ZCARD", timeouts)
    if live == 0 and redis.call("EXISTS", order, compacted, businessKeys) == 0 then return 0 end
    local isOrder
    if live == 0 then isOrder = redis.call("EXISTS", order, compacted) > 0 or countDue(timeouts) == 0
    elseif redis.call("EXISTS", compacted) == 1 then isOrder = true
    elseif elementsAre == "members" then isOrder = hasStrays(live)
    else isOrder = isUntidy(live) end
    local keyCount = redis.call("HLEN", businessKeys)
    local areKeys = keyCount > live and keyCount > live + countDue(timeouts)
    return (isOrder and 1 or 0) + (areKeys and 2 or 0)
  end
  local isDone, found = pcall(look)
  return isDone and found or 3
end
`,
});

/** Reads what the fragment `untidy` returns, and 4 more if messages are remembered that were offered with `once`. */
export function asUntidy(raw: RawReply | undefined): Untidy {
  const found = asNumber(raw);
  return { order: found % 2 === 1, businessKeys: found % 4 >= 2, once: found >= 4 };
}

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
 * list, and once the LIST is empty, the compacted list becomes the LIST. Until then the insertion order is the
 * compacted list followed by the LIST. Any process may take the next step, and a crash between two steps loses nothing.
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
  keys: ["timeouts", "order", "compacted"],
  args: ["step", "thorough"],
  needs: [deadBelow, dropAll, findNext, isLong, may, spending],
  lua: /* lua */ `
local head = redis.call("ZRANGE", timeouts, 0, 0, "WITHSCORES")
if not head[1] then
  dropAll()
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
may("LTRIM", order)
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

/**
 * One bounded step of restoring the insertion-order LIST to what Redisson expects: exactly the whole members of the
 * delayed messages. For queues with `interop: "redisson"`. Returns whether there is more to do.
 *
 * While all clients use that option, the LIST is exact anyway, and a step finds nothing to do. Clients without it leave
 * addresses, and elements of messages that have gone. As in a compaction, the whole members of live messages move from
 * the head of the LIST to the compacted list, step by step, and once the LIST is empty, the compacted list becomes the
 * LIST. Until then Java clients see only the rest of the LIST; Delayline's scripts see both lists.
 */
export const tidyMembers = defineScript({
  name: "tidy-members",
  keys: ["timeouts", "order", "compacted"],
  args: ["step"],
  needs: [dropAll, findNext, hasStrays, may, spending],
  lua: /* lua */ `
local live = redis.call("ZCARD", timeouts)
if live == 0 then
  dropAll()
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
may("LTRIM", order)
if #alive > 0 then redis.call("RPUSH", compacted, unpack(alive)) end
redis.call("LTRIM", order, seen, -1)
if redis.call("EXISTS", order) == 1 then return 1 end
if redis.call("EXISTS", compacted) == 1 then redis.call("RENAME", compacted, order) end
return 0
`,
  reply: asFlag,
});

/**
 * One bounded step through the index of business keys, which drops entries whose message is gone. Returns the cursor of
 * the next step, "0" at the end.
 *
 * Delayline's scripts remove a message's entry together with the message. Java clients do not. So if there are more
 * keys than delayed messages and retries, some entries must be dead. Otherwise the index is no larger than the queue,
 * and a step does nothing.
 */
export const tidyBusinessKeys = defineScript({
  name: "tidy-business-keys",
  keys: ["businessKeys"],
  args: ["cursor", "step"],
  needs: [countDue, isHeld],
  lua: /* lua */ `
if cursor == "0" and redis.call("HLEN", businessKeys) <= countDue() then return "0" end
local scanned = redis.call("HSCAN", businessKeys, cursor, "COUNT", step)
for i = 1, #scanned[2], 2 do
  local key, entry = scanned[2][i], scanned[2][i + 1]
  if not isHeld(key, entry) then redis.call("HDEL", businessKeys, key) end
end
return scanned[1]
`,
  reply: asText,
});
