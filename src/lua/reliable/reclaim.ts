import { clock } from "../fragments/clock.ts";
import { consumersOf } from "../fragments/stream-info.ts";
import { deadLetter } from "../places/dead.ts";
import { handedOut, inFlight } from "../places/in-flight.ts";
import { appendEntry, heldBack } from "../places/stream.ts";
import { orBury } from "../fragments/failure.ts";
import { putHeldBack } from "../places/retry-moves.ts";
import { finishWritten } from "../places/settle.ts";
import { asFlag, asNumber, asRow } from "../reply.ts";
import { defineScript } from "../script.ts";

export interface ReclaimReply {
  /** How many messages are ready again, or wait for the end of their pause. */
  readonly reclaimed: number;
  /** How many became dead letters. */
  readonly buried: number;
  /** Whether the consumer has more in flight. */
  readonly isLeft: boolean;
}

/**
 * Takes up to `limit` entries from a dead consumer, and makes their messages ready again for this group. For each it
 * counts a failed attempt: its consumer died. A message that has had `maxAttempts` becomes a dead letter. Removes
 * the consumer once it has nothing in flight.
 *
 * A message that the consumer kept without having handed it out has not been attempted, so nothing is counted; see
 * `handOut`. If it is held back it becomes a retry that is due when its pause is over.
 *
 * The consumer must have been silent for `idle` milliseconds. Otherwise it is alive, and nothing is done.
 *
 * Entries whose data are gone, or that are for another group, are only acknowledged, and those in a foreign format are
 * set aside (see `settle`); none of them counts. If Redis refuses to append an entry or to set one aside the script
 * fails: in the first case the entries before it have been reclaimed, in the second all others.
 */
export const reclaim = defineScript({
  name: "reclaim",
  keys: ["stream"],
  args: ["channel", "group", "consumer", "idle", "maxAttempts", "limit"],
  needs: [consumersOf],
  rarely: [
    appendEntry,
    clock,
    deadLetter,
    finishWritten,
    handedOut,
    heldBack,
    inFlight,
    orBury,
    putHeldBack,
  ],
  lua: /* lua */ `
local isDead = false
for _, found in ipairs(consumersOf(group)) do
  if found.name == consumer then isDead = found.idle >= tonumber(idle) end
end
if not isDead then return { 0, 0, 0 } end
local now, ids, isOwn, deliveries = rare().clock(), {}, {}, {}
for i, row in ipairs(rare().inFlight(group, "-", "+", limit, consumer)) do ids[i], deliveries[i] = row[1], row[4] end
local reclaimed, buried = 0, 0
local _, refused, heldUp = rare().finishWritten(group, ids, isOwn, function(entry, i)
  isOwn[ids[i]] = entry.g == group
  if entry.g and entry.g ~= group then return false end
  local isAttempted = rare().wasHandedOut(entry, deliveries[i])
  if rare().isHeldBack(entry, now) then
    reclaimed = reclaimed + 1
    return rare().putHeldBack(entry, group)
  end
  local function giveBack()
    entry.g = group
    reclaimed = reclaimed + 1
    return rare().appendEntry(entry)
  end
  if not isAttempted then return giveBack() end
  return rare().orBury(entry, now, tonumber(maxAttempts), function(reason)
    buried = buried + 1
    return rare().appendDead(entry, group, reason)
  end, giveBack)
end)
if refused or heldUp then return refused or heldUp end
-- Redis would drop what the consumer has in flight with it.
local isLeft = #rare().inFlight(group, "-", "+", 1, consumer) > 0
if not isLeft then redis.call("XGROUP", "DELCONSUMER", stream, group, consumer) end
return { reclaimed, buried, isLeft and 1 or 0 }
`,
  reply: (raw): ReclaimReply =>
    asRow(raw, { reclaimed: asNumber, buried: asNumber, isLeft: asFlag }),
});
