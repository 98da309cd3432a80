import { defineFragment } from "../../fragment.ts";
import { address } from "../message/address.ts";
import { locate } from "./locate.ts";

/**
 * `find(element)`: the member and the deadline of the message that an element of the insertion order stands for, or nil
 * if the message is gone.
 */
export const find = defineFragment({
  keys: ["timeouts"],
  needs: [address, locate],
  lua: /* lua */ `
local function find(element)
  if isAddress(element) then return locate(element) end
  cost = cost + 1 + #element / 4096
  local score = redis.call("ZSCORE", timeouts, element)
  if score then return element, tonumber(score) end
  return nil
end
`,
});
