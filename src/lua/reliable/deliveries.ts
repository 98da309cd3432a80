import { defineFragment } from "../fragment.ts";
import { asInstant, clock } from "../fragments/clock.ts";
import { deadlineAfter } from "../fragments/deadline.ts";
import { earliestDue } from "../places/due.ts";
import { appendEntry, asEntry, heldBack, rankOf, type Entry } from "../places/stream.ts";
import { countFailure } from "../fragments/failure.ts";
import { HANDED_OUT, inFlight, inFlightFor, keepInFlight } from "../places/in-flight.ts";
import { deadLetter } from "../places/dead.ts";
import { putHeldBack, putRetry, tryRetries } from "../places/retry-moves.ts";
import { finish, settle } from "../places/settle.ts";
import { asArray, asFlags, asNumber, asRow, asText, orNothing, type RawReply } from "../reply.ts";
import { defineScript } from "../script.ts";
import { noteHandled } from "../places/handled.ts";
import { endOnce } from "../places/once.ts";
import { groupNames } from "../fragments/stream-info.ts";
import { wakeUp } from "../fragments/wake-up.ts";

/**
 * Notes that the consumer hands out an entry that a script has kept in flight for it: from now on the death of the
 * consumer counts as an attempt; see `handedOut`.
 *
 * Returns 0 if it may be handed out. If it is held back until `heldBackUntil` (epoch ms; 0 if it is not), notes that it
 * has not been handed out, since Redis counts a read, too; returns how many milliseconds are left. Returns undefined if
 * it is not in flight for this consumer.
 */
export const handOut = defineScript({
  name: "hand-out",
  keys: ["stream"],
  args: ["group", "consumer", "entry", "heldBackUntil"],
  needs: [clock, inFlight],
  lua: /* lua */ `
if not inFlight(group, entry, entry, 1, consumer)[1] then return -1 end
local left = math.ceil(heldBackUntil - clock() / 1000)
redis.call("XCLAIM", stream, group, consumer, 0, entry, "RETRYCOUNT", left > 0 and 0 or ${HANDED_OUT}, "JUSTID")
return math.max(0, left)
`,
  reply: (raw) => {
    const left = asNumber(raw);
    return left < 0 ? undefined : left;
  },
});

/**
 * Renews the leases of entries; returns for each whether it is in flight for this consumer.
 *
 * It counts no delivery, and since when an entry is in flight stays as it is; see `beat`. From Redis 7.0 on, an entry
 * whose data are gone is removed, and returns false.
 */
export const extend = defineScript({
  name: "extend",
  keys: ["stream"],
  args: ["group", "consumer"],
  each: ["entry"],
  needs: [inFlightFor],
  lua: /* lua */ `
local ids, extended = {}, {}
for each row do ids[#ids + 1] = entry end
local mine = inFlightFor(group, consumer, ids, #ids)
for i, id in ipairs(ids) do
  local claimed = mine[id] and redis.call("XCLAIM", stream, group, consumer, 0, id, "IDLE", mine[id], "JUSTID")
  extended[i] = claimed and claimed[1] and 1 or 0
end
return extended
`,
  reply: asFlags,
});

/**
 * `acknowledge(group, consumer, heldCount, ids, isOwn)`: acknowledges entries. Returns those that were in flight for the
 * consumer, and a list for {@link asSettled}.
 */
const acknowledge = defineFragment({
  keys: ["stream"],
  needs: [finish, inFlightFor],
  lua: /* lua */ `
local function acknowledge(group, consumer, heldCount, ids, isOwn)
  local mine, areAll = inFlightFor(group, consumer, ids, heldCount)
  if areAll then
    finish(group, ids, isOwn, true)
    return ids, { #ids }
  end
  local done, reply = {}, { #ids }
  for i, id in ipairs(ids) do
    if mine[id] then
      done[#done + 1] = id
      -- Settle an id that is listed twice only once.
      mine[id] = nil
    else
      reply[#reply + 1] = i
    end
  end
  finish(group, done, isOwn)
  -- Usually none is missing, so the missing ones are the shorter reply.
  return done, reply
end
`,
});

/** Reads the list that `acknowledge` returned: for each entry whether it was in flight for the consumer. */
function asSettled(raw: RawReply | undefined): boolean[] {
  const [count, ...missing] = asArray(raw).map(asNumber) as [number, ...number[]];
  const settled = Array.from({ length: count }, () => true);
  for (const position of missing) settled[position - 1] = false;
  return settled;
}

/**
 * Acknowledges entries; returns for each whether it was in flight for this consumer.
 *
 * An entry is deleted once no other group needs it. `own` (1 or 0): whether the entry is for this group only.
 * `heldCount`: about how many entries the consumer has in flight. Sent a second time, the script changes nothing and
 * returns false for all.
 */
export const ack = defineScript({
  name: "ack",
  keys: ["stream"],
  args: ["group", "consumer", "heldCount"],
  each: ["entry", "own"],
  rowsAs: "columns",
  needs: [acknowledge],
  lua: /* lua */ `
local ids, isOwn = cjson.decode(entry), {}
if own:find("1", 1, true) then
  for i, flag in ipairs(cjson.decode(own)) do
    if flag == 1 then isOwn[ids[i]] = true end
  end
end
local _, reply = acknowledge(group, consumer, heldCount, ids, isOwn)
return reply
`,
  reply: asSettled,
});

export interface AckAndNoteReply {
  /** For each row whether the entry was in flight for this consumer, and is acknowledged. */
  readonly settled: readonly boolean[];
  /** Why Redis refused to note what was handled; undefined if everything is noted. */
  readonly refusal: string | undefined;
}

/**
 * Acknowledges entries as {@link ack} does, and notes which messages were handled; see `noteHandled`. Sent a second time,
 * it changes nothing and notes nothing.
 *
 * The note comes last, and never turns an acknowledgement into an error: nothing depends on it. A row without an `address`
 * is acknowledged only.
 */
export const ackAndNote = defineScript({
  name: "ack-and-note",
  keys: ["stream"],
  args: ["group", "consumer", "heldCount", "process", "keepFor"],
  each: ["entry", "own", "address", "key", "attempt", "took"],
  needs: [acknowledge, noteHandled],
  lua: /* lua */ `
local ids, isOwn, noteOf = {}, {}, {}
for each row do
  ids[#ids + 1] = entry
  if own == "1" then isOwn[entry] = true end
  if address ~= "" then noteOf[entry] = { address, key, attempt, took } end
end
local done, reply = acknowledge(group, consumer, heldCount, ids, isOwn)
local notes = {}
for _, id in ipairs(done) do notes[#notes + 1] = noteOf[id] end
local isNoted, why = pcall(noteHandled, group, process, keepFor, notes)
return { reply, not isNoted and (type(why) == "table" and why.err or tostring(why)) }
`,
  reply: (raw): AckAndNoteReply => asRow(raw, { settled: asSettled, refusal: orNothing(asText) }),
});

/**
 * Does what {@link ackAndNote} does, of which `keepFor` may be 0, with deliveries of messages among them that were offered with
 * `once`: `keepKey` is for how many milliseconds their keys stay taken; empty for the others. Both notes come last.
 */
export const ackOnce = defineScript({
  name: "ack-once",
  keys: ["stream"],
  args: ["group", "consumer", "heldCount", "process", "keepFor"],
  each: ["entry", "own", "address", "key", "attempt", "took", "keepKey"],
  needs: [acknowledge, clock, endOnce, groupNames],
  rarely: [noteHandled],
  lua: /* lua */ `
local ids, isOwn, noteOf, onceOf = {}, {}, {}, {}
for each row do
  ids[#ids + 1] = entry
  if own == "1" then isOwn[entry] = true end
  if address ~= "" then noteOf[entry] = { address, key, attempt, took } end
  if keepKey ~= "" then onceOf[entry] = { key, address, tonumber(keepKey) } end
end
local done, reply = acknowledge(group, consumer, heldCount, ids, isOwn)
local isNoted, why = pcall(function()
  local now, isOnly = clock() / 1000, #groupNames() == 1
  local notes = {}
  for _, id in ipairs(done) do
    local one = onceOf[id]
    if one then endOnce(one[1], one[2], one[3], now, isOnly) end
    notes[#notes + 1] = keepFor ~= "0" and noteOf[id] or nil
  end
  if #notes > 0 then rare().noteHandled(group, process, keepFor, notes) end
end)
return { reply, not isNoted and (type(why) == "table" and why.err or tostring(why)) }
`,
  reply: (raw): AckAndNoteReply => asRow(raw, { settled: asSettled, refusal: orNothing(asText) }),
});

/**
 * Makes messages ready again, for this group only; returns for each entry whether it was in flight for this consumer.
 * Redis cannot undo a delivery, so the message is appended as a new entry and the old one is finished.
 *
 * `own` (1 or 0): whether the entry is for this group only. `counted` (1 or 0): whether the delivery counts as an
 * attempt that failed for `reason`; the message keeps the reason. `heldCount`: about how many entries the consumer
 * has in flight.
 *
 * A message that is held back, and whose delivery does not count, becomes a retry that is due when its pause is over.
 *
 * An entry whose data are gone is only acknowledged, one in a foreign format is set aside (see `settle`), and both
 * return false. If Redis refuses to append an entry the script fails, and those before it have been given back.
 *
 * Counts in `returned` the new entries of deliveries that do not count; see `stats`.
 */
export const giveBackEntries = defineScript({
  name: "give-back-entries",
  keys: ["stream", "returned"],
  args: ["channel", "group", "consumer", "heldCount"],
  each: ["entry", "own", "counted", "reason"],
  needs: [appendEntry, settle],
  rarely: [clock, countFailure, heldBack, putHeldBack],
  lua: /* lua */ `
local ids, isOwn, failures = {}, {}, {}
for each row do
  ids[#ids + 1] = entry
  isOwn[entry] = own == "1"
  failures[#failures + 1] = counted == "1" and reason
end
local now
local returnedCount = 0
local settled, refused = settle(group, consumer, heldCount, ids, isOwn, function(entry, i)
  -- An entry for another group, whose acknowledgement was lost: it is only acknowledged.
  if entry.g and entry.g ~= group then return false end
  if failures[i] or entry.u then now = now or rare().clock() end
  if failures[i] then
    rare().countFailure(entry, failures[i], now)
    entry.u = nil
  elseif entry.u and rare().isHeldBack(entry, now) then
    return rare().putHeldBack(entry, group)
  end
  entry.g = group
  local added = appendEntry(entry)
  if type(added) == "string" and not failures[i] then returnedCount = returnedCount + 1 end
  return added
end)
-- Redis counts every entry. Only what became ready is to be counted; a refusal costs no more than that.
if returnedCount > 0 then
  local before = redis.pcall("GET", returned)
  redis.pcall("SET", returned, (tonumber(before) or 0) + returnedCount)
end
return refused or settled
`,
  reply: asFlags,
});

export interface RetryLaterReply {
  /** The server's clock (epoch ms), to the microsecond. */
  readonly serverTime: number;
  /** For each row whether the entry was in flight for this consumer, and its message is retrying now. */
  readonly settled: readonly boolean[];
}

/**
 * Makes messages retry for this group in `delay` milliseconds. The failure, the new due time and the acknowledgement
 * are one step, so a message is either in flight or retrying.
 *
 * `own` (1 or 0): whether the entry is for this group only. `counted` (1 or 0): whether the delivery counts as an
 * attempt that failed for `reason`; the message keeps the reason. `heldCount`: about how many entries the consumer
 * has in flight.
 *
 * An entry whose data are gone is only acknowledged, and returns false. If Redis refuses a write the script fails,
 * and the messages before it are retrying. A message that is already retrying for this group gets the due time of the
 * last row.
 */
export const retryLater = defineScript({
  name: "retry-later",
  keys: ["stream"],
  args: ["channel", "group", "consumer", "heldCount"],
  each: ["entry", "own", "delay", "counted", "reason"],
  needs: [clock, countFailure, deadlineAfter, earliestDue, putRetry, settle, tryRetries, wakeUp],
  lua: /* lua */ `
local now = clock()
local ids, isOwn, delays, failures = {}, {}, {}, {}
for each row do
  ids[#ids + 1] = entry
  isOwn[entry] = own == "1"
  delays[#delays + 1] = delay
  failures[#failures + 1] = counted == "1" and reason
end
-- Read before anything is written: a key of a foreign type fails here.
local earliest = earliestDue() or math.huge
local soonest = math.huge
for i = 1, #ids do soonest = math.min(soonest, deadlineAfter(now / 1000, delays[i])) end
local refusal = tryRetries()
if refusal then return refusal end
local settled, refused = settle(group, consumer, heldCount, ids, isOwn, function(entry, i)
  -- Before the first write: nothing behind this can be refused.
  local refusal = wakeUp(soonest, earliest)
  if refusal then return refusal end
  earliest = soonest
  local isKeyless = (entry.t or "") == ""
  if failures[i] then countFailure(entry, failures[i], now) end
  return putRetry(entry, group, deadlineAfter(now / 1000, delays[i]), isKeyless)
end)
return refused or { now, settled }
`,
  reply: (raw): RetryLaterReply => asRow(raw, { serverTime: asInstant, settled: asFlags }),
});

/**
 * Counts a failed attempt and leaves the message in flight for this consumer, as a new entry with the rank of the old
 * one. For strict order: the consumer handles it again, before any other message with its key, but not for `delay`
 * milliseconds; see `heldBack`. Returns the new entry, or undefined if the old one was not in flight for this consumer.
 *
 * Sent a second time, the script changes nothing and returns undefined, although the message is in flight for this
 * consumer.
 *
 * `own` (1 or 0): whether the entry is for this group only. `reason`: why the attempt failed; the message keeps it.
 */
export const again = defineScript({
  name: "again",
  keys: ["stream"],
  args: ["group", "consumer", "heldCount", "entry", "own", "delay", "reason"],
  needs: [appendEntry, clock, countFailure, deadlineAfter, keepInFlight, rankOf, settle],
  lua: /* lua */ `
mayKeep(group, consumer)
local now, kept = clock(), {}
local _, refused = settle(group, consumer, heldCount, { entry }, { [entry] = own == "1" }, function(found)
  if found.g and found.g ~= group then return false end
  countFailure(found, reason, now)
  found.g, found.u = group, deadlineAfter(now / 1000, delay)
  local id = appendEntry(found, rankOf(entry, found))
  if type(id) == "string" then kept[1] = id end
  return id
end)
if refused then return refused end
keep(group, consumer, kept)
return { #kept, kept[1] and redis.call("XRANGE", stream, kept[1], kept[1])[1] }
`,
  reply: (raw: RawReply): Entry | undefined => {
    const [count, entry] = asArray(raw);
    return asNumber(count) === 1 ? asEntry(entry ?? null) : undefined;
  },
});

/**
 * Makes messages dead letters; returns for each entry whether it was in flight for this consumer.
 *
 * `own` (1 or 0): whether the entry is for this group only. `reason`: the reason of the dead letter and of its last
 * failure. `heldCount`: about how many entries the consumer has in flight.
 *
 * An entry whose data are gone is only acknowledged, and returns false. If Redis refuses to append a dead letter the
 * script fails, and the entries before it are buried.
 */
export const bury = defineScript({
  name: "bury",
  keys: ["stream"],
  args: ["group", "consumer", "heldCount"],
  each: ["entry", "own", "reason"],
  needs: [clock, countFailure, deadLetter, settle],
  lua: /* lua */ `
local now = clock()
local ids, isOwn, reasons = {}, {}, {}
for each row do
  ids[#ids + 1] = entry
  isOwn[entry] = own == "1"
  reasons[#reasons + 1] = reason
end
local settled, refused = settle(group, consumer, heldCount, ids, isOwn, function(entry, i)
  countFailure(entry, reasons[i], now)
  return appendDead(entry, group, reasons[i])
end)
return refused or settled
`,
  reply: asFlags,
});
