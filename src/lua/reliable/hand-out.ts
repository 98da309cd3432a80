import { clock } from "../fragments/clock.ts";
import { inFlight } from "../fragments/stream/in-flight.ts";
import { asNumber } from "../reply.ts";
import { defineScript } from "../script.ts";

/**
 * Notes that the consumer hands out an entry that a script has kept in flight for it: from now on Redis counts a
 * delivery, so the death of the consumer counts as an attempt.
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
redis.call("XCLAIM", stream, group, consumer, 0, entry, "RETRYCOUNT", left > 0 and 0 or 1, "JUSTID")
return math.max(0, left)
`,
  reply: (raw) => {
    const left = asNumber(raw);
    return left < 0 ? undefined : left;
  },
});
