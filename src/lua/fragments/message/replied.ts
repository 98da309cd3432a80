import { defineFragment } from "../../fragment.ts";
import { asNumber, type RawReply } from "../../reply.ts";

/**
 * `replied(score)`: a deadline as a reply can carry it; {@link asDeadline} reads it.
 *
 * A Lua number becomes an integer of 64 bits in a reply: fractions are cut off, and what is larger wraps.
 * Nobody offers such a deadline, but a score is any double.
 */
export const replied = defineFragment({
  lua: /* lua */ `
local function replied(score)
  if score % 1 == 0 and score >= 0 and score <= 9007199254740991 then return score end
  return string.format("%.17g", score)
end
`,
});

/** A deadline in a reply: an integer, or the text of any double. */
export function asDeadline(raw: RawReply | undefined): number {
  return asNumber(Buffer.isBuffer(raw) ? raw.toString().replace("inf", "Infinity") : raw);
}

/**
 * Deadlines are whole numbers below this (epoch ms). A score in the ZSET that somebody else wrote may be
 * any double; a message with a greater one is never due.
 */
export const LAST_DEADLINE = 9e15;
