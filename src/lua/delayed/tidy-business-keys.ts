import { delayedWith } from "../fragments/delayed/delayed-with.ts";
import { asText } from "../reply.ts";
import { defineScript } from "../script.ts";

/**
 * One bounded step through the index of business keys, which drops entries whose message is gone. Returns the cursor of
 * the next step, "0" at the end.
 *
 * Delayline's scripts remove a message's entry together with the message. Java clients do not. So if there are more
 * keys than messages, some entries must be dead. Otherwise the index is no larger than the queue, and a step does
 * nothing.
 */
export const tidyBusinessKeys = defineScript({
  name: "tidy-business-keys",
  keys: ["timeouts", "businessKeys"],
  args: ["cursor", "step"],
  needs: [delayedWith],
  lua: /* lua */ `
if cursor == "0" and redis.call("HLEN", businessKeys) <= redis.call("ZCARD", timeouts) then return "0" end
local scanned = redis.call("HSCAN", businessKeys, cursor, "COUNT", step)
for i = 1, #scanned[2], 2 do
  local key, entry = scanned[2][i], scanned[2][i + 1]
  if not resolveEntry(key, entry) then redis.call("HDEL", businessKeys, key) end
end
return scanned[1]
`,
  reply: asText,
});
