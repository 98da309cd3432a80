import { waitingFor } from "../../fragments/failed/waiting-for.ts";
import { asFlags } from "../../reply.ts";
import { defineScript } from "../../script.ts";

/**
 * Removes messages from the retries of every group; returns for each whether it was there. `wanted` is an address. A
 * message that is in flight for another group stays in flight.
 *
 * Must not be sent twice: the reply says what this run has done.
 */
export const removeRetries = defineScript({
  name: "remove-retries",
  keys: ["stream", "retries", "retrying"],
  args: [],
  each: ["wanted"],
  needs: [waitingFor],
  lua: /* lua */ `
local flags = {}
-- Try first whether HDEL is permitted. If it failed after ZREM, the message would stay in the HASH, where nothing
-- finds it.
redis.call("HDEL", retrying, "delayline: no such field")
for each row do
  local names = waitingFor(wanted)
  flags[#flags + 1] = 0
  if #names > 0 then
    redis.call("ZREM", retries, unpack(names))
    -- A member of the ZSET without a value in the HASH is not a message. A foreign program wrote it.
    if redis.call("HDEL", retrying, unpack(names)) > 0 then flags[#flags] = 1 end
  end
end
return flags
`,
  reply: asFlags,
});
