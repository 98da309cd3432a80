import { defineFragment } from "../fragment.ts";
import { asNumber, type RawReply } from "../reply.ts";

/**
 * `deadlineAfter(now, delay)`: the deadline of a message that is offered at `now` (epoch ms) with a delay (ms).
 *
 * Rounded up, so that no message is early. But a delay of 0 is rounded down, and so due at once. So is a negative one, which
 * is over already: its message comes before those whose delay ends now.
 */
export const deadlineAfter = defineFragment({
  lua: /* lua */ `
local function deadlineAfter(now, delay)
  delay = tonumber(delay)
  return delay <= 0 and math.floor(now + delay) or math.ceil(now + delay)
end
`,
});

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
