import { defineFragment } from "../../fragment.ts";
import { address } from "../message/address.ts";

/**
 * `hasStrays(live)`: whether the LIST of a queue with `interop: "redisson"` and `live` messages shows elements that
 * Redisson would not have written: more elements than messages, or an address at one of its ends. Addresses between
 * members stay unnoticed until one of their messages has left.
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
