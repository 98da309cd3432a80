import { byElements } from "../family.ts";
import { bytes } from "../fragments/message/bytes.ts";
import { asInstant, clock } from "../fragments/clock.ts";
import { deadlineAfter } from "../fragments/deadline-after.ts";
import { delayedWith } from "../fragments/delayed/delayed-with.ts";
import { forget } from "../fragments/delayed/forget.ts";
import { indexEntry } from "../fragments/message/index-entry.ts";
import { packAddress } from "../fragments/message/pack-address.ts";
import { asDeadline, replied } from "../fragments/message/replied.ts";
import { asBuffer, asNumber, asRow, asRows, orNothing, type RawReply } from "../reply.ts";
import { defineScript } from "../script.ts";

/** The outcomes of an offer. An entry of the index stores the position in this list. */
export const OUTCOMES = ["added", "rejected", "replaced", "kept"] as const;
/** The outcome of an offer. */
export type Outcome = (typeof OUTCOMES)[number];

export interface KeyedReply {
  readonly deadline: number;
  readonly outcome: Outcome;
  /** If the offer was rejected: the id of the delayed message that has the key. */
  readonly delayedId: Buffer | undefined;
}

/**
 * Offers messages with business keys. Like `offer`, but a key has at most one delayed message. An empty `key` means no
 * key: such a message is added as by `offer`, and not indexed.
 *
 * `rule` says what to do if the key already has a delayed message: `reject`, `replace` or `keep`. `maxWait` may be
 * empty; otherwise a message is due at the latest that many milliseconds after the first offer since the key was last
 * free.
 *
 * The address in the index shows that a message is sent a second time; the outcome there is then the result of its first
 * copy. See the fragment `indexEntry`.
 *
 * Redis rolls nothing back. So every write that can be refused names its undo step, and replaced messages are removed
 * last.
 */
export const offerKeyed = byElements((elements) =>
  defineScript({
    name: `offer-keyed-${elements}`,
    keys: ["timeouts", "order", "compacted", "businessKeys"],
    args: ["channel"],
    each: ["member", "delay", "deadline", "key", "rule", "maxWait"],
    needs: [
      clock,
      deadlineAfter,
      packAddress,
      bytes,
      delayedWith,
      indexEntry,
      replied,
      ...(elements === "members" ? [forget] : []),
    ],
    lua: /* lua */ `
local now = clock() / 1000
local head = tonumber(redis.call("ZRANGE", timeouts, 0, 0, "WITHSCORES")[2]) or math.huge
local results, elements, replaced, undo = {}, {}, {}, {}
local first, failure = math.huge, nil

local function write(takeBack, ...)
  local done = redis.pcall(...)
  if type(done) == "table" then
    failure = done
    return nil
  end
  if takeBack then undo[#undo + 1] = takeBack end
  return done
end

-- When the key was first offered (epoch ms). Before the first replacement, only the stamp of the id shows this, in
-- microseconds. Foreign writers may have written anything into either.
local function sinceOf(old, entry)
  local since = sinceIn(entry) or wholeAt(old, 2) / 1000
  return math.floor(math.min(since, now))
end

local function put(member, delay, deadline, key, rule, maxWait)
  local old, oldDeadline, entry
  if key ~= "" then old, oldDeadline, entry = delayedWith(key) end
  if old and old:sub(2, 17) == member:sub(2, 17) then
    return oldDeadline, outcomeIn(entry), false
  end
  if old and rule == "reject" then return oldDeadline, 1, old:sub(2, 17) end

  local since = old and sinceOf(old, entry)
  local outcome = old and 2 or 0
  if old and rule == "keep" then
    deadline, outcome = oldDeadline, 3
  else
    deadline = tonumber(deadline) or deadlineAfter(now, delay)
    if maxWait ~= "" then
      since = since or math.floor(now)
      deadline = math.min(deadline, math.ceil(since + maxWait))
    end
  end

  if old then
    -- The replaced message is removed last. Check that removing is permitted before writing anything.
    write(nil, "ZREM", timeouts, "delayline: no such member")
    if failure then return end
  end
  local isNew = write(function() redis.call("ZREM", timeouts, member) end, "ZADD", timeouts, "NX", deadline, member)
  if failure then return end
  if isNew == 0 then return tonumber(redis.call("ZSCORE", timeouts, member)), outcome, false end
  local address = packAddress(deadline, member)
  if key ~= "" then
    local value = address .. packOutcome(outcome, since)
    write(function()
      if entry then redis.call("HSET", businessKeys, key, entry) else redis.call("HDEL", businessKeys, key) end
    end, "HSET", businessKeys, key, value)
  end
  elements[#elements + 1] = ${elements === "members" ? "member" : "address"}
  first = math.min(first, deadline)
  replaced[#replaced + 1] = old
  return deadline, outcome, false
end

for each row do
  local dueAt, outcome, delayedId = put(member, delay, deadline, key, rule, maxWait)
  if failure then break end
  results[#results + 1] = replied(dueAt)
  results[#results + 1] = outcome
  results[#results + 1] = delayedId
end
if not failure and #elements > 0 then
  write(function() redis.call("LTRIM", order, 0, -#elements - 1) end, "RPUSH", order, unpack(elements))
end
-- Publish for a new head only, as in offer.
if not failure and first < head then write(nil, "PUBLISH", channel, first) end
if not failure then
  for _, member in ipairs(replaced) do redis.call("ZREM", timeouts, member) end
  ${elements === "members" ? "if #replaced > 0 then forget(replaced) end" : ""}
end
if failure then
  for i = #undo, 1, -1 do undo[i]() end
  return failure
end
return { now * 1000, results }
`,
    reply: (raw: RawReply) =>
      asRow(raw, {
        serverTime: asInstant,
        results: (rows): KeyedReply[] =>
          asRows(rows, {
            deadline: asDeadline,
            outcome: (number) => OUTCOMES[asNumber(number)] ?? "added",
            delayedId: orNothing(asBuffer),
          }),
      }),
  }),
);
