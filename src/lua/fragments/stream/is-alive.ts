import { defineFragment } from "../../fragment.ts";

/**
 * `isAlive(consumer, timeout)`: whether Redis has seen a consumer, as `consumersOf` returns it, within the visibility
 * timeout in its name; `timeout` applies to a name without one. See `consumer-name.ts`.
 */
export const isAlive = defineFragment({
  lua: /* lua */ `
local function isAlive(consumer, timeout)
  return consumer.idle < (tonumber(consumer.name:match("^delayline:(%d+):")) or tonumber(timeout))
end
`,
});
