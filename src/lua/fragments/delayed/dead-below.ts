import { defineFragment } from "../../fragment.ts";
import { address } from "../message/address.ts";
import { bytes } from "../message/bytes.ts";

/**
 * `deadBelow(head, deadline)`: a function that tells whether an element of the order LIST is surely
 * dead, given the head of the ZSET.
 *
 * Messages leave in the order (deadline, member), so an address below the head's has left: one
 * comparison, whatever the size of the queue. An address above it may be that of a message that was
 * cancelled: it counts as alive here. A member that Java wrote is looked up.
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
