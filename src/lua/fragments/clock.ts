import { defineFragment } from "../fragment.ts";
import { asNumber, type RawReply } from "../reply.ts";

/**
 * `clock()`: the server's time in microseconds. Call it once per script: Redis 7.0 does not freeze the time.
 *
 * No other Lua reads the server's clock. So a test can run any script at an instant of its own, by replacing this
 * fragment.
 */
export const clock = defineFragment({
  lua: /* lua */ `
local function clock()
  local time = redis.call("TIME")
  return time[1] * 1000000 + time[2]
end
`,
});

/** Reads a result of `clock()` in a reply: epoch milliseconds, with fractions. */
export function asInstant(raw: RawReply | undefined): number {
  return asNumber(raw) / 1000;
}
