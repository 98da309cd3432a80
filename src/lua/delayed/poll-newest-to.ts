import { find } from "../fragments/delayed/find.ts";
import { takeOut } from "../fragments/delayed/take-out.ts";
import { unpackMember } from "../fragments/message/unpack-member.ts";
import { BUDGET } from "./page.ts";
import { asBuffer, asFlag, asRow, orNothing } from "../reply.ts";
import { defineScript } from "../script.ts";

/**
 * Moves the payload of the message inserted last, due or not, to the head of a ready LIST. Looks at up to `step`
 * elements. Returns the payload (or nil), and whether elements are left.
 *
 * Must not be sent twice, because its reply reports what this run did: use the connection that never resends.
 */
export const pollNewestTo = defineScript({
  name: "poll-newest-to",
  keys: ["timeouts", "order", "compacted", "businessKeys", "ready"],
  args: ["step"],
  needs: [find, takeOut, unpackMember],
  lua: /* lua */ `
for _ = 1, step do
  if spent() > ${BUDGET} then break end
  local list = order
  local element = redis.call("LINDEX", order, -1)
  if not element then
    list = compacted
    element = redis.call("LINDEX", compacted, -1)
  end
  if not element then return { false, 0 } end
  local member = find(element)
  local id, payload = nil, nil
  if member then id, payload = unpackMember(member) end
  if id then
    -- Check that removing is permitted, then push before removing: a refusal has then changed nothing.
    local keys = keysOf({ member })
    redis.call("ZREM", timeouts, "delayline: no such member")
    redis.call("LPUSH", ready, payload)
    takeOut({ member }, keys)
    -- If it stays, the element is dead.
    redis.pcall("RPOP", list)
    return { payload, 1 }
  end
  redis.call("RPOP", list)
end
return { false, 1 }
`,
  reply: (raw) => asRow(raw, { payload: orNothing(asBuffer), hasMore: asFlag }),
});
