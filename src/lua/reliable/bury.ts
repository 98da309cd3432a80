import { clock } from "../fragments/clock.ts";
import { deadLetter } from "../fragments/failed/dead-letter.ts";
import { failure } from "../fragments/failed/failure.ts";
import { settle } from "../fragments/stream/settle.ts";
import { asFlags } from "../reply.ts";
import { defineScript } from "../script.ts";

/**
 * Moves entries to the dead letters; returns for each whether it was in flight for this consumer.
 *
 * `own` (1 or 0): whether the entry is for this group only. `reason`: what the dead letter says of it, and why the
 * last delivery failed. `heldCount`: about how many entries are in flight for the consumer.
 *
 * An entry whose data are gone is only acknowledged: false. If Redis refuses to append a dead letter the
 * script fails, and those before it are buried.
 */
export const bury = defineScript({
  name: "bury",
  keys: ["stream", "dead"],
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
