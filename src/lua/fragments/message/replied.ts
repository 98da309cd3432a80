import { defineFragment } from "../../fragment.ts";
import { asNumber, type RawReply } from "../../reply.ts";

/**
 * `replied(score)`: a deadline in a form that a reply can carry; {@link asDeadline} reads it.
 *
 * Redis converts a Lua number in a reply to a 64-bit integer, which cuts fractions off and wraps larger numbers. No
 * offer has such a deadline, but foreign writers may write any double as a score.
 */
export const replied = defineFragment({
  lua: /* lua */ `
local function replied(score)
  if score % 1 == 0 and score >= 0 and score <= 9007199254740991 then return score end
  return string.format("%.17g", score)
end
`,
});

/** Reads a deadline in a reply: an integer, or any double as text. */
export function asDeadline(raw: RawReply | undefined): number {
  return asNumber(Buffer.isBuffer(raw) ? raw.toString().replace("inf", "Infinity") : raw);
}

/**
 * The largest legal deadline (epoch ms). Foreign writers may write any double as a score; a message with a larger one
 * is never due.
 */
export const LAST_DEADLINE = 9e15;
