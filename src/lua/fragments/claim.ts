import { defineFragment } from "../fragment.ts";
import { asInstant } from "./clock.ts";
import type { RawReply } from "../reply.ts";

/**
 * The key `mover` holds the last claim: the name of the task that moved messages last, `@`, and when (epoch microseconds
 * on the server's clock), or one more than a later instant that the task knew. So these instants only grow, as long as
 * Redis keeps what it was told: an earlier one shows that it went back to an older copy. Older releases write the name
 * alone.
 *
 * `readClaim()`: the name of the task, or false without a claim; and the instant, 0 without one.
 */
export const claim = defineFragment({
  keys: ["mover"],
  lua: /* lua */ `
local function readClaim()
  local last = redis.pcall("GET", mover)
  if type(last) ~= "string" then return false, 0 end
  local name, claimedAt = last:match("^(.*)@(%d+)$")
  if not name or #claimedAt > 16 then return last, 0 end
  return name, tonumber(claimedAt)
end
`,
});

/** Reads the instant of a claim in a reply (epoch ms, with fractions); undefined if there is none. */
export function asClaimedAt(raw: RawReply | undefined): number | undefined {
  const claimedAt = asInstant(raw);
  return claimedAt > 0 ? claimedAt : undefined;
}
