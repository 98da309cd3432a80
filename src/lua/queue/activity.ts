import { asInstant, clock } from "../fragments/clock.ts";
import { asText, type RawReply } from "../reply.ts";
import { defineScript } from "../script.ts";

/** How many entries the log of a queue keeps. */
export const KEPT = 200;

/** Seconds. */
const KEPT_FOR = 90 * 86_400;

/**
 * Adds an entry to the log of what was done to a queue, the newest first. The log expires 90 days after its last entry. An
 * entry that is sent a second time is not added again: it begins with a text of its own.
 *
 * It sets the time and makes room first: if Redis refuses either, the log does not grow, and does not stay for ever.
 */
export const noteActivity = defineScript({
  name: "note-activity",
  keys: ["activity"],
  args: ["entry"],
  needs: [clock],
  lua: /* lua */ `
local newest = redis.call("LINDEX", activity, 0)
if newest and newest:sub(-#entry) == entry then return end
redis.call("EXPIRE", activity, ${KEPT_FOR})
redis.call("LTRIM", activity, 0, ${KEPT - 2})
redis.call("LPUSH", activity, string.format("%.0f %s", clock(), entry))
redis.call("EXPIRE", activity, ${KEPT_FOR})
`,
  reply: () => undefined,
});

/** Reads an entry: when it was added (epoch ms), and the rest; undefined for a foreign one. */
export function unpackActivity(raw: RawReply): { at: number; entry: string } | undefined {
  const [, micros, entry] = /^(\d{1,16}) (.*)$/s.exec(asText(raw)) ?? [];
  return micros === undefined ? undefined : { at: asInstant(micros), entry: entry! };
}
