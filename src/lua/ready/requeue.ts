import { asNumber } from "../reply.ts";
import { defineScript } from "../script.ts";

/**
 * Moves payloads from the quarantine to the end of the ready LIST, oldest first: up to `limit`, and about `maxBytes`.
 * Returns how many.
 *
 * Redis rolls nothing back, so payloads are pushed before they are removed: a refused push has then changed nothing. An
 * LTRIM that trims nothing comes first. It proves that removing is permitted. And when memory is full, Redis refuses
 * only the first write of a script, and never a removal, so the push behind the LTRIM passes.
 *
 * Must not be sent twice, because its reply reports what this run did: use the connection that never resends.
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
