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
 * Takes out up to `limit` messages, those inserted first. Looks at up to `step` elements, and pops each of them, dead
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
local members, bytes = {}, 0
for _ = 1, step do
  if #members >= tonumber(limit) or bytes >= tonumber(maxBytes) then break end
  -- Taking a message out costs about as much as two look-ups.
  if spent() + 2 * #members > ${BUDGET} then break end
  local element = redis.call("LPOP", compacted) or redis.call("LPOP", order)
  if not element then return { members, 0 } end
  local member = find(element)
  if member then
    takeOut({ member })
    members[#members + 1] = member
    bytes = bytes + #member
    spend(member)
  end
end
return { members, 1 }
`,
  reply: (raw): PollReply => asRow(raw, { members: asBuffers, hasMore: asFlag }),
});
