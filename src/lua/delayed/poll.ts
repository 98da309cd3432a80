import { dropDelayed, find, keysOf, spending } from "../places/delayed.ts";
import { unpackMember } from "../fragments/member.ts";
import { asBuffer, asBuffers, asFlag, asRow, orNothing } from "../reply.ts";
import { defineScript } from "../script.ts";
import { BUDGET } from "./pages.ts";
import { may } from "../fragments/may.ts";

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
  needs: [dropDelayed, find, keysOf, spending],
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
if #members > 0 then dropDelayed(members, keysOf(members)) end
for list, count in pairs(passed) do
  -- An element that stays is dead: every reader skips it.
  local done = count > 0 and redis.pcall("LTRIM", list, count, -1)
  if #members == 0 and done and done.err and hasMore == 1 then return done end
end
return { members, hasMore }
`,
  reply: (raw): PollReply => asRow(raw, { members: asBuffers, hasMore: asFlag }),
});

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
  needs: [dropDelayed, find, keysOf, may, spending, unpackMember],
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
    may("ZREM", timeouts)
    redis.call("LPUSH", ready, payload)
    dropDelayed({ member }, keys)
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
