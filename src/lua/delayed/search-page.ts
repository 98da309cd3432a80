import { findNext } from "../fragments/delayed/find-next.ts";
import { unpackMember } from "../fragments/message/unpack-member.ts";
import { view } from "../fragments/delayed/view.ts";
import { asBuffer, asFlag, asRows } from "../reply.ts";
import { defineScript } from "../script.ts";
import { asPage, eachElement, type Page } from "./page.ts";

/** A live element of the insertion order, and whether its message has one of the wanted payloads. */
export interface SearchHit {
  readonly element: Buffer;
  readonly isMatch: boolean;
}

/** Compares the payloads of up to `step` next elements with the wanted ones, byte for byte. */
export const searchPage = defineScript({
  name: "search-page",
  keys: ["timeouts", "order", "compacted"],
  args: ["position", "last", "step"],
  each: ["wanted"],
  needs: [findNext, view, unpackMember],
  lua: `local isWanted = {}
for each row do isWanted[wanted] = true end
${eachElement(/* lua */ `
    local member = findNext(element)
    if member then
      local _, payload = unpackMember(member)
      items[#items + 1] = element
      items[#items + 1] = payload and isWanted[payload] and 1 or 0
      spend(member)
    end`)}`,
  reply: (raw): Page<SearchHit> =>
    asPage(raw, (items) => asRows(items, { element: asBuffer, isMatch: asFlag })),
});
