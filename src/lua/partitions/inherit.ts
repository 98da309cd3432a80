import { clock } from "../fragments/clock.ts";
import { deadLetter } from "../places/dead.ts";
import { appendEntry, asEntry, heldBack, rankOf, readEntry, type Entry } from "../places/stream.ts";
import { holds } from "./hold.ts";
import { orBury } from "../fragments/failure.ts";
import { handedOut, inFlight, keepInFlight } from "../places/in-flight.ts";
import { streamId } from "../fragments/stream-info.ts";
import { finishWritten } from "../places/settle.ts";
import { asArray, asFlag, asNumber, asRow } from "../reply.ts";
import { defineScript } from "../script.ts";
import { may } from "../fragments/may.ts";

/** The deliveries that a holder has inherited. */
export interface Inheritance {
  /** Whether the lease is still the caller's. */
  readonly isOurs: boolean;
  /** Now in flight for the holder, in the order in which they have to be handled. */
  readonly entries: readonly Entry[];
  /** How many became dead letters. */
  readonly buried: number;
}

/**
 * Notes the holder's consumer, and passes to it what is in flight for the consumers of its predecessors, `limit`
 * entries of each at most, in the order of their ranks (`rankOf`). Those of one key have to be handled in this order,
 * and before any undelivered message. `counted` (1 or 0) is whether the lost delivery counts as an attempt; a message
 * that has had `maxAttempts` attempts becomes a dead letter. A predecessor that kept a message without having handed
 * it out has not attempted it, so nothing is counted; see `handOut`. A message that is held back stays so, for the rest
 * of its pause.
 *
 * A message whose attempt counts gets a new entry with its rank, which holds its attempts. The group may not have reached
 * that entry yet, and then delivers it a second time to its consumer.
 */
export const inherit = defineScript({
  name: "inherit",
  keys: ["stream", "holder"],
  args: ["process", "fence", "group", "consumer", "maxAttempts", "limit"],
  each: ["orphan", "counted"],
  needs: [
    appendEntry,
    clock,
    deadLetter,
    finishWritten,
    handedOut,
    heldBack,
    holds,
    inFlight,
    keepInFlight,
    may,
    orBury,
    rankOf,
    readEntry,
    streamId,
  ],
  lua: /* lua */ `
if not holds(process, fence) then return { 0, {}, 0 } end
redis.call("HSET", holder, "consumer", consumer)
mayKeep(group, consumer)
-- What is refused at the end is refused here, while nothing has moved.
redis.call("XGROUP", "DELCONSUMER", stream, group, "delayline: no such consumer")
may("HDEL", holder)
local now, kept, buried, isLeft, refused = clock(), {}, 0, false, nil
for each row do
  local ids, isOwn, ours = {}, {}, {}
  local function note(id, fields, rank)
    ours[#ours + 1] = id
    kept[#kept + 1] = { rank = rank, row = { id, fields } }
  end
  for _, found in ipairs(inFlight(group, "-", "+", limit, orphan)) do
    local id, deliveries = found[1], found[4]
    local entry, fields = readEntry(id)
    local isAttempted = counted == "1" and (not entry or wasHandedOut(entry, deliveries))
    if entry and (not entry.g or entry.g == group) and (not isAttempted or isHeldBack(entry, now)) then
      note(id, fields, rankOf(id, entry))
    else
      ids[#ids + 1] = id
    end
  end
  local _, refusal = finishWritten(group, ids, isOwn, function(entry, i)
    isOwn[ids[i]] = entry.g == group
    if entry.g and entry.g ~= group then return false end
    return orBury(entry, now, tonumber(maxAttempts), function(reason)
      local letter = appendDead(entry, group, reason)
      if type(letter) == "string" then buried = buried + 1 end
      return letter
    end, function()
      entry.g = group
      local rank = rankOf(ids[i], entry)
      local id = appendEntry(entry, rank)
      if type(id) == "string" then note(id, redis.call("XRANGE", stream, id, id)[1][2], rank) end
      return id
    end)
  end)
  keep(group, consumer, ours)
  if #inFlight(group, "-", "+", 1, orphan) > 0 then isLeft = true
  else redis.call("XGROUP", "DELCONSUMER", stream, group, orphan) end
  refused = refused or refusal
end
if refused and #kept == 0 then return refused end
if not isLeft then redis.call("HDEL", holder, "orphans") end
table.sort(kept, function(one, other) return compareIds(one.rank, other.rank) < 0 end)
for i, found in ipairs(kept) do kept[i] = found.row end
return { 1, kept, buried }
`,
  reply: (raw): Inheritance =>
    asRow(raw, {
      isOurs: asFlag,
      entries: (kept) => asArray(kept).map(asEntry),
      buried: asNumber,
    }),
});
