import { delayedWith } from "../fragments/delayed/delayed-with.ts";
import { replied } from "../fragments/message/replied.ts";
import { asNumber, asRow } from "../reply.ts";
import { defineScript } from "../script.ts";
import { asMembers } from "./get.ts";

/**
 * Returns the delayed messages with these business keys, in the order of the keys, and how many keys it has looked up:
 * it stops early at `maxBytes`. O(log N) for each key.
 */
export const getByKeys = defineScript({
  name: "get-by-keys",
  keys: ["timeouts", "businessKeys"],
  args: ["maxBytes"],
  each: ["key"],
  needs: [delayedWith, replied],
  lua: /* lua */ `
local messages, bytes, looked = {}, 0, 0
for each row do
  if bytes >= tonumber(maxBytes) then break end
  local member, deadline = delayedWith(key)
  if member then
    messages[#messages + 1] = replied(deadline)
    messages[#messages + 1] = member
    bytes = bytes + #member
  end
  looked = looked + 1
end
return { looked, messages }
`,
  reply: (raw) => asRow(raw, { lookedUp: asNumber, messages: asMembers }),
});
