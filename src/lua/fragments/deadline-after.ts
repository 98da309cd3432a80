import { defineFragment } from "../fragment.ts";

/**
 * `deadlineAfter(now, delay)`: the deadline of a message that is offered at `now` (epoch ms) with a delay (ms).
 *
 * Rounded up, so that no message is early. But a delay of 0 is rounded down, and so due at once.
 */
export const deadlineAfter = defineFragment({
  lua: /* lua */ `
local function deadlineAfter(now, delay)
  delay = tonumber(delay)
  return delay == 0 and math.floor(now) or math.ceil(now + delay)
end
`,
});
