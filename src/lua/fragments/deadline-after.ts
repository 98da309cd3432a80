import { defineFragment } from "../fragment.ts";

/**
 * `deadlineAfter(now, delay)`: the deadline of a message that is offered now, both in milliseconds.
 * Rounded up, since nothing is ever early; but a delay of 0 is due at once.
 */
export const deadlineAfter = defineFragment({
  lua: /* lua */ `
local function deadlineAfter(now, delay)
  delay = tonumber(delay)
  return delay == 0 and math.floor(now) or math.ceil(now + delay)
end
`,
});
