import { IN_PART } from "../../failure.ts";
import { defineFragment } from "../fragment.ts";
import { packAddress } from "../fragments/address.ts";
import { asInstant, clock } from "../fragments/clock.ts";
import { asDeadline, deadlineAfter, replied } from "../fragments/deadline.ts";
import { wakeUp } from "../fragments/wake-up.ts";
import { putDelayed, putOne, takeBack } from "../places/delayed.ts";
import { asArray, type RawReply } from "../reply.ts";
import { defineScript } from "../script.ts";

/**
 * `refuseOffer(refusal, members)`: the reply to an offer of these members that Redis has refused. If one of them is
 * delayed nevertheless, or Redis refuses to say, the error says that a part may be done: an earlier copy of the offer has
 * stored it.
 */
export const refuseOffer = defineFragment({
  keys: ["timeouts"],
  lua: /* lua */ `
local function refuseOffer(refusal, members)
  for _, member in ipairs(members) do
    local score = redis.pcall("ZSCORE", timeouts, member)
    local isUnknown = type(score) == "table" and not score.err:find("WRONGTYPE", 1, true)
    if type(score) == "string" or isUnknown then return { err = refusal.err .. "${IN_PART}" } end
  end
  return refusal
end
`,
});

export interface OfferReply {
  /** The server's time (epoch ms), to the microsecond. */
  readonly serverTime: number;
  /** The deadlines of the messages (epoch ms), in the order of the rows. */
  readonly deadlines: readonly number[];
}

/**
 * Puts messages into the timeouts ZSET, and at the end of the insertion order.
 *
 * A message is due in `delay` milliseconds or at `deadline`; the other column is empty.
 *
 * A message that is sent a second time while it is still delayed is not stored again; its first deadline is returned.
 *
 * If one of them is the new head, it wakes whoever moves messages: only that can be due before the timers that are armed.
 */
export const offer = defineScript({
  name: "offer",
  keys: ["timeouts"],
  args: ["channel", "elementsAre"],
  each: ["member", "delay", "deadline"],
  needs: [clock, deadlineAfter, packAddress, putOne],
  rarely: [putDelayed, refuseOffer, replied, takeBack, wakeUp],
  lua: /* lua */ `
local now = clock() / 1000
local members, deadlines, refusal, added, known, first, rank
-- Most offers come alone, and to somewhere behind the head: then nothing else remains to be done.
if the only row then
  deadline = tonumber(deadline) or deadlineAfter(now, delay)
  local isNew
  refusal, isNew = putOne(member, deadline, elementsAre == "members" and member or packAddress(deadline, member))
  rank = isNew and redis.pcall("ZRANK", timeouts, member)
  if type(rank) == "number" and rank > 0 then return { now * 1000, deadline } end
  members, deadlines = { member }, { deadline }
  added, known = not refusal and (isNew and members or {}), isNew and {} or { 1 }
  first = isNew and 1
else
  local elements = {}
  members, deadlines = {}, {}
  for each row do
    deadline = tonumber(deadline) or deadlineAfter(now, delay)
    members[#members + 1], deadlines[#deadlines + 1] = member, deadline
    elements[#elements + 1] = elementsAre == "members" and member or packAddress(deadline, member)
  end
  refusal, added, known, first = rare().putDelayed(members, deadlines, elements)
  rank = first and redis.pcall("ZRANK", timeouts, members[first])
end
if type(rank) == "table" then refusal = rank elseif rank == 0 then refusal = rare().wakeUp(deadlines[first]) end
if refusal then
  if added then rare().takeBack(added) end
  return rare().refuseOffer(refusal, members)
end
for _, i in ipairs(known) do
  local score = redis.pcall("ZSCORE", timeouts, members[i])
  if type(score) == "table" then return rare().refuseOffer(score, members) end
  deadlines[i] = rare().replied(tonumber(score))
end
table.insert(deadlines, 1, now * 1000)
return deadlines
`,
  reply: (raw: RawReply): OfferReply => {
    const [serverTime, ...deadlines] = asArray(raw);
    return { serverTime: asInstant(serverTime), deadlines: deadlines.map(asDeadline) };
  },
});
