import { defineFragment } from "../../fragment.ts";
import { address } from "../message/address.ts";

/**
 * `hasStrays(live)`: whether the LIST of a queue with `interop: "redisson"` has something that Redisson
 * would not have put there, with so many live messages: more elements than messages, or an address at
 * one of its ends. Addresses between members do not show before the first of them is dead.
 */
export const hasStrays = defineFragment({
  keys: ["order"],
  needs: [address],
  lua: /* lua */ `
local function hasStrays(live)
  if redis.call("LLEN", order) > live then return true end
  local first, last = redis.call("LINDEX", order, 0), redis.call("LINDEX", order, -1)
  return first and (isAddress(first) or isAddress(last))
end
`,
});
