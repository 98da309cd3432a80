import { find } from "../fragments/find.ts";
import { asDeadline, replied } from "../fragments/replied.ts";
import { view } from "../fragments/view.ts";
import { asBuffer, defineScript } from "../script.ts";
import type { DelayedMember } from "./get.ts";
import { asPage, elementsAt, type Page } from "./page.ts";

/** The messages of the next `step` elements of the insertion order; stops early at `maxBytes`. */
export const readPage = defineScript({
  name: "read-page",
  keys: ["timeouts", "order", "compacted"],
  args: ["position", "last", "step", "maxBytes"],
  needs: [find, view, replied],
  lua: /* lua */ `${elementsAt}
local messages, bytes, seen = {}, 0, 0
for i, element in ipairs(elements) do
  local member, deadline = find(element)
  if member then
    messages[#messages + 1] = replied(deadline)
    messages[#messages + 1] = member
    bytes = bytes + #member
  end
  seen = i
  if bytes >= tonumber(maxBytes) then break end
end
return { position + seen, elements[seen], messages }
`,
  reply: (raw): Page<DelayedMember> =>
    asPage(raw, (items) => {
      const messages: DelayedMember[] = [];
      for (let i = 0; i < items.length; i += 2) {
        messages.push({ deadline: asDeadline(items[i]), member: asBuffer(items[i + 1]) });
      }
      return messages;
    }),
});
