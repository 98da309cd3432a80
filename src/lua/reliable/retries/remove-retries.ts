import { waitingFor } from "../../fragments/failed/waiting-for.ts";
import { asFlags } from "../../reply.ts";
import { defineScript } from "../../script.ts";

/**
 * Takes messages out of what waits for a retry, in every group; returns for each whether it was there.
 * `wanted` is an address. Where a message is in flight for another group, it stays so.
 *
 * It must not be sent twice, since its reply is about what it itself did.
 */
export const removeRetries = defineScript({
  name: "remove-retries",
  keys: ["stream", "retries", "retrying"],
  args: [],
  each: ["wanted"],
  needs: [waitingFor],
  lua: /* lua */ `
local flags = {}
-- What may be refused comes first: what waits in the HASH is in nobody's hands once the ZSET does not name it.
redis.call("HDEL", retrying, "delayline: no such field")
for each row do
  local names = waitingFor(wanted)
  flags[#flags + 1] = 0
  if #names > 0 then
    redis.call("ZREM", retries, unpack(names))
    -- A name by itself, which somebody else wrote, is no message.
    if redis.call("HDEL", retrying, unpack(names)) > 0 then flags[#flags] = 1 end
  end
end
return flags
`,
  reply: asFlags,
});
