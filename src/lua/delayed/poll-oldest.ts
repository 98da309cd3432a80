import { find } from "../fragments/delayed/find.ts";
import { takeOut } from "../fragments/delayed/take-out.ts";
import { BUDGET } from "./page.ts";
import { asBuffers, asFlag, asRow } from "../reply.ts";
import { defineScript } from "../script.ts";

export interface PollReply {
  readonly members: readonly Buffer[];
  /** Whether elements are left. */
  readonly hasMore: boolean;
}

/**
 * Takes the oldest inserted messages out, `limit` at most, looking at `step` elements at most.
 * Returns their members, and whether elements are left.
 *
 * It pops the elements that it looks at, so what it finds dead is out of the way.
 *
 * It must not be sent twice, since its reply is about what it itself did: it goes through a connection
 * that never re-sends.
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
  -- To take one out costs about as much as two looks.
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
