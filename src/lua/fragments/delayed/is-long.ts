import { defineFragment } from "../../fragment.ts";

/** `isLong(live)`: whether the LIST of a queue with `live` messages has to be compacted. */
export const isLong = defineFragment({
  keys: ["order"],
  lua: /* lua */ `
local function isLong(live)
  return redis.call("LLEN", order) > 2 * live + 2000
end
`,
});
