import { findNext } from "../fragments/delayed/find-next.ts";
import { replied } from "../fragments/message/replied.ts";
import { view } from "../fragments/delayed/view.ts";
import { defineScript } from "../script.ts";
import { asMembers, type DelayedMember } from "./get.ts";
import { asPage, eachElement, type Page } from "./page.ts";

/** Returns the messages of up to `step` next elements of the insertion order; stops early at `maxBytes`. */
export const readPage = defineScript({
  name: "read-page",
  keys: ["timeouts", "order", "compacted"],
  args: ["position", "last", "step", "maxBytes"],
  needs: [findNext, view, replied],
  lua: eachElement(/* lua */ `
    local member, deadline = findNext(element)
    if member then
      items[#items + 1] = replied(deadline)
      items[#items + 1] = member
      spend(member)
      maxBytes = maxBytes - #member
      isFull = maxBytes <= 0
    end`),
  reply: (raw): Page<DelayedMember> => asPage(raw, asMembers),
});
