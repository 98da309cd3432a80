import { asClaimedAt, claim } from "../fragments/claim.ts";
import { asInstant } from "../fragments/clock.ts";
import { asDeadline, replied } from "../fragments/deadline.ts";
import { asFlag, asRow, orNothing } from "../reply.ts";
import { defineScript } from "../script.ts";

/** What a queue shows of its past. */
export interface Past {
  /** Whether any task has claimed that it moves. */
  readonly isClaimed: boolean;
  /** When it did (epoch ms); undefined if a task of an older release did, or none. */
  readonly claimedAt: number | undefined;
  /** The earliest deadline of a delayed message (epoch ms). */
  readonly deadline: number | undefined;
  /** When that message was offered (epoch ms), by its id; undefined if the id does not tell. */
  readonly offeredAt: number | undefined;
}

/** Returns the last claim, and the first delayed message. Reads only; O(1). */
export const lookBack = defineScript({
  name: "look-back",
  keys: ["mover", "timeouts"],
  args: [],
  needs: [claim, replied],
  lua: /* lua */ `
local task, claimedAt = readClaim()
local head = redis.call("ZRANGE", timeouts, 0, 0, "WITHSCORES")
local member, offeredAt = head[1] or "", 0
if member:byte(1) == 16 and #member >= 17 then
  local high, low = struct.unpack(">I4I4", member:sub(2, 9))
  -- Beyond that a number is not exact, and no instant.
  if high < 2097152 then offeredAt = high * 4294967296 + low end
end
return { task and 1 or 0, claimedAt, head[2] and replied(tonumber(head[2])) or false, offeredAt }
`,
  reply: (raw): Past => {
    const { offeredAt, ...past } = asRow(raw, {
      isClaimed: asFlag,
      claimedAt: asClaimedAt,
      deadline: orNothing(asDeadline),
      offeredAt: asInstant,
    });
    return { ...past, offeredAt: offeredAt > 0 ? offeredAt : undefined };
  },
});
