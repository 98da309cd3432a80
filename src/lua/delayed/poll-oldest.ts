import { find } from "../fragments/delayed/find.ts";
import { takeOut } from "../fragments/delayed/take-out.ts";
import { BUDGET } from "./page.ts";
import { asBuffers, asFlag, asRow } from "../reply.ts";
import { defineScript } from "../script.ts";

/** The reply of {@link pollOldest}. */
export interface PollReply {
  readonly members: readonly Buffer[];
  /** Whether elements are left. */
  readonly hasMore: boolean;
}

/**
 * Takes out up to `limit` messages, those inserted first. Looks at up to `step` elements, and removes each of them, dead
 * ones too. Returns the messages' members, and whether elements are left.
 *
 * Must not be sent twice, because its reply reports what this run did: use the connection that never resends.
 */
export const pollOldest = defineScript({
  name: "poll-oldest",
  keys: ["timeouts", "order", "compacted", "businessKeys"],
  args: ["limit", "step", "maxBytes"],
  needs: [find, takeOut],
  lua: /* lua */ `
local members, isChosen, bytes, hasMore = {}, {}, 0, 1
local passed = { [compacted] = 0, [order] = 0 }
for _ = 1, step do
  if #members >= tonumber(limit) or bytes >= tonumber(maxBytes) then break end
  -- Taking a message out costs about as much as two look-ups.
  if spent() + 2 * #members > ${BUDGET} then break end
  local list = compacted
  local element = redis.call("LINDEX", compacted, passed[compacted])
  if not element then
    list = order
    element = redis.call("LINDEX", order, passed[order])
  end
  if not element then
    hasMore = 0
    break
  end
  passed[list] = passed[list] + 1
  local member = find(element)
  if member and not isChosen[member] then
    isChosen[member] = true
    members[#members + 1] = member
    bytes = bytes + #member
    spend(member)
  end
end
-- Nothing was written so far. What is taken out has to be returned, so nothing behind this may raise an error.
if #members > 0 then takeOut(members, keysOf(members)) end
for list, count in pairs(passed) do
  -- An element that stays is dead: every reader skips it.
  local done = count > 0 and redis.pcall("LTRIM", list, count, -1)
  if #members == 0 and done and done.err and hasMore == 1 then return done end
end
return { members, hasMore }
`,
  reply: (raw): PollReply => asRow(raw, { members: asBuffers, hasMore: asFlag }),
});
