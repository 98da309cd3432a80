import { asNumber } from "../reply.ts";
import { defineScript } from "../script.ts";

/**
 * Moves payloads from the quarantine to the end of the ready LIST, oldest first: `limit` at most, and about
 * `maxBytes`. Returns how many.
 *
 * Redis rolls nothing back, so they are pushed before they are removed: a push that is refused has changed
 * nothing. That they may be removed is tried before that, by an LTRIM that trims nothing. When memory is
 * full Redis refuses only the first write of a script, and never a removal; so the same LTRIM lets the push
 * pass.
 *
 * It must not be sent twice, since its reply is about what it itself did: it goes through a connection
 * that never re-sends.
 */
export const requeue = defineScript({
  name: "requeue",
  keys: ["quarantine", "ready"],
  args: ["limit", "maxBytes"],
  lua: /* lua */ `
redis.call("LTRIM", quarantine, 0, -1)
local payloads, bytes = {}, 0
while #payloads < tonumber(limit) and bytes < tonumber(maxBytes) do
  local payload = redis.call("LINDEX", quarantine, #payloads)
  if not payload then break end
  payloads[#payloads + 1] = payload
  bytes = bytes + #payload
end
if #payloads == 0 then return 0 end
redis.call("RPUSH", ready, unpack(payloads))
redis.call("LTRIM", quarantine, #payloads, -1)
return #payloads
`,
  reply: asNumber,
});
