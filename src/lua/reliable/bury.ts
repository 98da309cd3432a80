import { clock } from "../fragments/clock.ts";
import { deadLetter } from "../fragments/failed/dead-letter.ts";
import { failure } from "../fragments/failed/failure.ts";
import { settle } from "../fragments/stream/settle.ts";
import { asFlags } from "../reply.ts";
import { defineScript } from "../script.ts";

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
  keys: ["stream", "dead", "unreadable"],
  args: ["group", "consumer", "heldCount"],
  each: ["entry", "own", "reason"],
  needs: [clock, deadLetter, failure, settle],
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
