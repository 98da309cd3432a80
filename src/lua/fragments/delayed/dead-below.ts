import { defineFragment } from "../../fragment.ts";
import { address } from "../message/address.ts";
import { bytes } from "../message/bytes.ts";

/**
 * `deadBelow(head, headDeadline)`: a function that returns whether an element of the insertion order is certainly dead,
 * given the head of the ZSET and its deadline.
 *
 * Due messages leave in the order (deadline, member), so an address below the head's is dead: one comparison, whatever
 * the size of the queue. An address above it may belong to a cancelled message, but counts as alive here. A member that
 * a Java client wrote is looked up.
 */
export const deadBelow = defineFragment({
  keys: ["timeouts"],
  needs: [address, bytes],
  lua: /* lua */ `
local function deadBelow(head, headDeadline)
  local comparable = head:byte(1) == 16 and #head >= 25
  return function(element)
    if not isAddress(element) then return not redis.call("ZSCORE", timeouts, element) end
    local deadline = deadlineOf(element)
    if deadline ~= headDeadline then return deadline < headDeadline end
    return comparable and compareBytes(element, 9, head, 2, 16) < 0
  end
end
`,
});
