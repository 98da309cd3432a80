import { deadlineOf, packAddress, wholeAt } from "../fragments/address.ts";
import { asInstant, clock } from "../fragments/clock.ts";
import { collecting } from "../fragments/collect.ts";
import { deadlineAfter, asDeadline, LAST_DEADLINE, replied } from "../fragments/deadline.ts";
import { resolve } from "../places/key-index.ts";
import { outcomeIn, packOutcome } from "../fragments/key-entry.ts";
import { leaving } from "../places/leaving.ts";
import { onceHolder, type OnceStage } from "../places/once.ts";
import { wakeUp } from "../fragments/wake-up.ts";
import { writes } from "../fragments/writes.ts";
import { putDelayed, putOne, takeBack } from "../places/delayed.ts";
import { refuseOffer } from "./offer.ts";
import { asBuffer, asNumber, asRow, asRows, orNothing, type RawReply } from "../reply.ts";
import { defineScript } from "../script.ts";

/** The outcomes of an offer. An entry of the index stores the position in this list. */
const OUTCOMES: readonly Outcome[] = ["added", "existing", "replaced", "updated", "collected"];
/** The outcome of an offer. */
export type Outcome = "added" | "existing" | "replaced" | "updated" | "collected";

export interface KeyedReply {
  readonly deadline: number;
  readonly outcome: Outcome;
  /** If the offer was ignored: the address of the message that holds the key. */
  readonly holder: Buffer | undefined;
  /** If an offer with `once` was ignored: how far that message has come, and when it was handled (epoch ms), if it was. */
  readonly stage?: OnceStage;
  readonly handledAt?: number;
}

/**
 * Offers messages with business keys. Like `offer`, but a key is held by at most one delayed or retrying message. An
 * empty `key` means no key: such a message is added as by `offer`, and not indexed.
 *
 * `rule` says what to do if the key is held already: `ignore`, `replace`, `update`, or collect, see `collecting`; or `once`, which
 * ignores, and also asks what the queue remembers of the key, see `once-record.ts`. `maxWait` may be empty; otherwise a
 * message is due at the latest that many milliseconds after the first offer since the key was last free, and so is every one
 * that replaces it. Of several limits the earliest holds.
 *
 * A retrying message is replaced for all groups that retry it, and its deadline is when it is due for the first of them.
 * Its key was free while it was ready and in flight, so the offer that replaces it is the first since then.
 *
 * The address in the index shows that a message is sent a second time; the outcome there is then the result of its first
 * copy. See the fragment `outcomeIn`.
 *
 * No rollback: the script reads first, and then writes what makes a message visible last: the index, the insertion order,
 * the ZSET. If one is refused, the index is put back, which Redis cannot refuse where an entry was replaced; where one was
 * added, it may stay and points to nothing. If Redis refuses the wake-up, and then to take the messages back, the error
 * says so (`refuseOffer`). Replaced messages are removed last.
 */
export const offerKeyed = defineScript({
  name: "offer-keyed",
  keys: ["timeouts", "businessKeys", "once"],
  args: ["channel", "elementsAre"],
  each: ["member", "delay", "deadline", "key", "rule", "maxWait"],
  needs: [clock, deadlineAfter, packAddress, packOutcome, putOne, wakeUp],
  rarely: [
    collecting,
    deadlineOf,
    leaving,
    onceHolder,
    outcomeIn,
    putDelayed,
    refuseOffer,
    replied,
    resolve,
    takeBack,
    wholeAt,
    writes,
  ],
  lua: /* lua */ `
local now = clock() / 1000
-- The messages to put, and the same by their keys; and what is replied for each row.
local puts, puttingWith, members, deadlines, offered, results
local refusal, added, known, first, rank
local only

local function dueBy(deadline, delay, cap)
  return math.min(tonumber(deadline) or deadlineAfter(now, delay), cap or math.huge)
end

-- Most offers come alone, with a key that nobody holds.
if the only row then
  local held = key ~= "" and redis.call("HGET", businessKeys, key)
  if held or rule == "once" and redis.call("HGET", once, key) then
    only = { member, delay, deadline, key, rule, maxWait, held }
  else
    local since = maxWait ~= "" and math.floor(now) or nil
    local cap = since and math.ceil(since + maxWait)
    deadline = dueBy(deadline, delay, cap)
    local address = packAddress(deadline, member)
    local entry = key ~= "" and address .. packOutcome(0, since, cap) or nil
    local indexed = entry and redis.pcall("HSET", businessKeys, key, entry)
    if type(indexed) == "table" then return rare().refuseOffer(indexed, { member }) end
    local isNew
    refusal, isNew = putOne(member, deadline, elementsAre == "members" and member or address)
    rank = isNew and redis.pcall("ZRANK", timeouts, member)
    if type(rank) == "table" then refusal = rank elseif rank == 0 then refusal = wakeUp(deadline) end
    if isNew and not refusal then return { now * 1000, { deadline, 0, false } } end
    local put = { member = member, deadline = deadline, key = entry and key, entry = entry, at = 1 }
    puts, puttingWith, members, deadlines = { put }, { [key] = put }, { member }, { deadline }
    offered, results = { member }, { deadline, 0, false }
    added, known = isNew ~= nil and (isNew and members or {}) or nil, isNew == false and { 1 } or {}
  end
end

local function putBack(put)
  if put.oldEntry then redis.pcall("HSET", businessKeys, put.key, put.oldEntry)
  elseif put.key then redis.pcall("HDEL", businessKeys, put.key) end
end

local leaves, places, fulls = {}, {}, {}
if not puts then
  local elements, entries = {}, {}
  puts, puttingWith, members, deadlines, offered, results = {}, {}, {}, {}, {}, {}

  -- When the key was first offered (epoch ms). Before the first replacement, only the stamp of the id shows this, in
  -- microseconds. Foreign writers may have written anything into either.
  local function sinceOf(old)
    local since = old.place == "retrying" and now or rare().sinceIn(old.entry) or rare().wholeAt(old.id, 1) / 1000
    return math.floor(math.min(since, now))
  end

  -- An entry of the index that points to a message begins with the message's address.
  local function holderAt(place, name, due, all, entry)
    return { place = place, name = name, deadline = due, all = all, entry = entry, id = entry:sub(9, 24) }
  end
  local function findHolder(key, held)
    -- False: it was read already, and is missing.
    if key == "" or held == false then return nil end
    local put = puttingWith[key]
    if put then
      local holder = holderAt("delayed", put.member, put.deadline, nil, put.entry)
      holder.put = put
      return holder
    end
    local place, name, due, all, entry = rare().resolve("", key, held)
    if not place then return nil end
    -- Others may have written any score of a retry.
    if place == "retrying" then due = math.min(math.max(math.ceil(due), 0), ${LAST_DEADLINE}) end
    return holderAt(place, name, due, all, entry)
  end

  -- A message that is full is due at once, and not behind the one that follows it.
  local function hastenFor(full, deadline)
    local due, put = math.min(math.floor(now), deadline), full.put
    if full.deadline <= due then return end
    if put then
      put.deadline = due
      if elementsAre ~= "members" then elements[put.i] = packAddress(due, put.member) end
    else
      full.due, fulls[#fulls + 1] = due, full
    end
  end

  local function decide(member, delay, deadline, key, rule, maxWait, held)
    local old = findHolder(key, held)
    if old and old.id == member:sub(2, 17) then
      return rare().deadlineOf(old.entry), rare().outcomeIn(old.entry), false
    end
    if old and rule == "ignore" then return old.deadline, 1, old.entry:sub(1, 24) end
    if rule == "once" then
      if old then return old.deadline, 1, old.entry:sub(1, 24) .. old.place end
      local stage, address, at, isTaken = rare().onceHolder(key, now)
      -- Sent again: its first copy was moved, and perhaps handled, in the meantime.
      if stage and address:sub(9) == member:sub(2, 17) then return rare().deadlineOf(address), 0, false end
      if isTaken then
        return rare().deadlineOf(address), 1, address .. stage .. (at and string.format(" %.0f", at) or "")
      end
    end

    local oldEntry, outcome, marks, full = old and old.entry, old and 2 or 0, "", nil
    if old and rule:byte(1) == 99 then
      local known, into
      known, into, member, marks = rare().collect(old, member, rule)
      if known then return into and old.deadline or math.floor(now), known, into and oldEntry:sub(1, 24) or false end
      if not into and old.place == "delayed" then full = old end
      old, outcome = into, into and 4 or 0
      offered[#offered] = member
    end

    local since = old and sinceOf(old)
    local cap = old and old.place ~= "retrying" and rare().capIn(old.entry) or nil
    if old and rule == "update" then
      deadline, outcome = old.deadline, 3
    else
      if maxWait ~= "" then
        since = since or math.floor(now)
        cap = math.min(cap or math.huge, math.ceil(since + maxWait))
      end
      deadline = dueBy(deadline, delay, cap)
    end

    if full then hastenFor(full, deadline) end
    -- Marks stand behind a cap, be it one that limits nothing.
    if marks ~= "" then since, cap = since or math.floor(now), cap or ${LAST_DEADLINE} end

    local address = packAddress(deadline, member)
    -- What this script puts has one member, however many offers it collects.
    local put = outcome == 4 and old.put or { old = old, oldEntry = oldEntry, i = #puts + 1 }
    put.member, put.deadline, put.at = member, deadline, #results + 1
    if key ~= "" then
      put.key, put.entry = key, address .. packOutcome(outcome, since, cap) .. marks
      puttingWith[key] = put
    end
    puts[put.i] = put
    elements[put.i] = elementsAre == "members" and member or address
    return deadline, outcome, false
  end

  local function take(member, ...)
    offered[#offered + 1] = member
    local dueAt, outcome, holder = decide(member, ...)
    results[#results + 1] = rare().replied(dueAt)
    results[#results + 1] = outcome
    results[#results + 1] = holder
  end
  if only then
    take(unpack(only))
  else
    for each row do
      take(member, delay, deadline, key, rule, maxWait)
    end
  end
  if #puts == 0 then return { now * 1000, results } end

  -- Nothing was written so far, and all reads are done. Replaced messages are removed last: is that permitted?
  for i, put in ipairs(puts) do
    members[i], deadlines[i] = put.member, put.deadline
    if put.key then entries[#entries + 1], entries[#entries + 2] = put.key, put.entry end
    local place = put.old and put.old.place
    if place and not leaves[place] then leaves[place], places[#places + 1] = {}, place end
  end
  -- What follows a full message must be taken back if that may not be due at once.
  if fulls[1] and not leaves.delayed then leaves.delayed, places[#places + 1] = {}, "delayed" end
  if places[1] then
    rare().attempt(rare().mayLeave, places, true)
    if rare().refused() then return rare().refuseOffer(rare().refused(), offered) end
  end

  local indexed = #entries > 0 and redis.pcall("HSET", businessKeys, unpack(entries))
  if type(indexed) == "table" then return rare().refuseOffer(indexed, offered) end
  refusal, added, known, first = rare().putDelayed(members, deadlines, elements)
  rank = first and redis.pcall("ZRANK", timeouts, members[first])
  if type(rank) == "table" then refusal = rank elseif rank == 0 then refusal = wakeUp(deadlines[first]) end
end

if fulls[1] and not refusal then refusal = rare().hasten(fulls, elementsAre) end
if refusal then
  -- If Redis does not let them be taken back, they keep their keys.
  local areStored = added and not rare().takeBack(added)
  for i = areStored and 0 or #puts, 1, -1 do putBack(puts[i]) end
  return rare().refuseOffer(refusal, offered)
end
for _, i in ipairs(known) do
  local put = puts[i]
  put.isKnown = true
  if put.key and puttingWith[put.key] == put then putBack(put) end
  local score = redis.pcall("ZSCORE", timeouts, put.member)
  if type(score) == "table" then return rare().refuseOffer(score, offered) end
  results[put.at] = rare().replied(tonumber(score))
end
for _, put in ipairs(places[1] and puts or {}) do
  local old = not put.isKnown and put.old
  local names = old and leaves[old.place]
  for _, one in ipairs(old and (old.all or { old }) or {}) do names[#names + 1] = one.name end
end
for _, place in ipairs(places) do
  if #leaves[place] > 0 then rare().leave(place, leaves[place], elementsAre) end
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
          holder: orNothing(asBuffer),
        }).map(withStage),
    }),
});

/** Behind the address of the holder an offer with `once` is told its stage, and when it was handled. */
function withStage(reply: KeyedReply): KeyedReply {
  const { holder } = reply;
  if (holder === undefined || holder.length <= ADDRESS_BYTES) return reply;
  const [stage, at] = holder.toString("latin1", ADDRESS_BYTES).split(" ");
  return {
    ...reply,
    holder: holder.subarray(0, ADDRESS_BYTES),
    stage: stage as OnceStage,
    ...(at !== undefined && { handledAt: Number(at) }),
  };
}

/** An entry of the index begins with an address of so many bytes. */
const ADDRESS_BYTES = 24;
