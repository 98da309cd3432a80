import { deadLetter } from "../fragments/dead-letter.ts";
import { asFlags } from "../fragments/held.ts";
import { settle } from "../fragments/settle.ts";
import { defineScript } from "../script.ts";

/**
 * Moves entries to the dead letters; returns for each whether it was in flight for this consumer.
 *
 * `own` (1 or 0): whether the entry is for this group only. `reason`: what the dead letter says of it. `inHand`:
 * about how many entries are in flight for the consumer.
 *
 * An entry whose data are gone is only acknowledged: false. If Redis refuses to append a dead letter the
 * script fails, and those before it are buried.
 */
export const bury = defineScript({
  name: "bury",
  keys: ["stream", "dead"],
  args: ["group", "consumer", "inHand"],
  each: ["entry", "own", "reason"],
  needs: [deadLetter, settle],
  lua: /* lua */ `
local ids, isOwn, reasons = {}, {}, {}
for each row do
  ids[#ids + 1] = entry
  isOwn[entry] = own == "1"
  reasons[#reasons + 1] = reason
end
local settled, refused = settle(group, consumer, inHand, ids, isOwn, function(entry, i)
  entry.n = entry.n + 1
  return appendDead(entry, group, reasons[i])
end)
return refused or settled
`,
  reply: asFlags,
});
