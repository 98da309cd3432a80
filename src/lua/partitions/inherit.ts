import { clock } from "../fragments/clock.ts";
import { deadLetter } from "../fragments/letter.ts";
import { asEntry, heldBack, type Entry } from "../fragments/entry.ts";
import { holds } from "./hold.ts";
import { orBury } from "../fragments/failure.ts";
import { keepInFlight } from "../fragments/in-flight.ts";
import { settle } from "../fragments/settle.ts";
import { asArray, asFlag, asNumber, asRow } from "../reply.ts";
import { defineScript } from "../script.ts";

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
 * entries of each at most, to be handled before any undelivered message. `counted` (1 or 0) is whether the lost
 * delivery counts as an attempt; a message that has had `maxDeliveries` attempts becomes a dead letter. A predecessor
 * that kept a message without having handed it out has not attempted it, so nothing is counted; see `handOut`. A message
 * that is held back stays so, for the rest of its pause.
 *
 * Each message gets a new entry, which holds its attempts. The group has not reached that entry yet, so it would be
 * delivered a second time: the holder has to settle it before the next read.
 */
export const inherit = defineScript({
  name: "inherit",
  keys: ["stream", "dead", "holder", "unreadable"],
  args: ["process", "fence", "group", "consumer", "maxDeliveries", "limit"],
  each: ["orphan", "counted"],
  needs: [clock, deadLetter, heldBack, holds, keepInFlight, orBury, settle],
  lua: /* lua */ `
if not holds(process, fence) then return { 0, {}, 0 } end
redis.call("HSET", holder, "consumer", consumer)
mayKeep(group, consumer)
-- What is refused at the end is refused here, while nothing has moved.
redis.call("XGROUP", "DELCONSUMER", stream, group, "delayline: no such consumer")
redis.call("HDEL", holder, "delayline: no such field")
local now, kept, buried, isLeft, refused = clock(), {}, 0, false, nil
for each row do
  local ids, isOwn, deliveries, ours = {}, {}, {}, {}
  for i, found in ipairs(inFlight(group, "-", "+", limit, orphan)) do ids[i], deliveries[i] = found[1], found[4] end
  local _, refusal = finishWritten(group, ids, isOwn, function(entry, i)
    isOwn[ids[i]] = entry.g == group
    if entry.g and entry.g ~= group then return false end
    local function passOn()
      entry.g = group
      local id = appendEntry(entry)
      if type(id) == "string" then ours[#ours + 1] = id end
      return id
    end
    if isHeldBack(entry, now) or counted ~= "1" or deliveries[i] == 0 then return passOn() end
    return orBury(entry, now, tonumber(maxDeliveries), function(reason)
      local letter = appendDead(entry, group, reason)
      if type(letter) == "string" then buried = buried + 1 end
      return letter
    end, passOn)
  end)
  keep(group, consumer, ours)
  for _, id in ipairs(ours) do kept[#kept + 1] = redis.call("XRANGE", stream, id, id)[1] end
  if #inFlight(group, "-", "+", 1, orphan) > 0 then isLeft = true
  else redis.call("XGROUP", "DELCONSUMER", stream, group, orphan) end
  refused = refused or refusal
end
if refused and #kept == 0 then return refused end
if not isLeft then redis.call("HDEL", holder, "orphans") end
return { 1, kept, buried }
`,
  reply: (raw): Inheritance =>
    asRow(raw, {
      isOurs: asFlag,
      entries: (kept) => asArray(kept).map(asEntry),
      buried: asNumber,
    }),
});
