import { defineFragment } from "../fragment.ts";
import { asNumber, type RawReply } from "../reply.ts";

/**
 * `clock()`: the server's time in microseconds. Once per script: Redis 7.0 does not freeze it.
 *
 * No other Lua asks for the time. So a test that needs another clock builds its script with another fragment of this
 * function in this one's place.
 */
export const clock = defineFragment({
  lua: /* lua */ `
local function clock()
  local time = redis.call("TIME")
  return time[1] * 1000000 + time[2]
end
`,
});

/** The instant (epoch ms, with fractions) of a reply that holds what `clock()` returned. */
export function asInstant(raw: RawReply | undefined): number {
  return asNumber(raw) / 1000;
}
