import { find } from "../fragments/find.ts";
import { unpackMember } from "../fragments/unpack-member.ts";
import { view } from "../fragments/view.ts";
import { asBuffer, asNumber, defineScript } from "../script.ts";
import { asPage, elementsAt, type Page } from "./page.ts";

/** A live element of the insertion order, and whether its payload is one of those searched for. */
export interface SearchHit {
  readonly element: Buffer;
  readonly isMatch: boolean;
}

/**
 * Compares the payloads of the next `step` elements with those that are searched for, byte for byte.
 */
export const searchPage = defineScript({
  name: "search-page",
  keys: ["timeouts", "order", "compacted"],
  args: ["position", "last", "step"],
  each: ["wanted"],
  needs: [find, view, unpackMember],
  lua: /* lua */ `${elementsAt}
local isWanted = {}
for each row do isWanted[wanted] = true end
local hits = {}
for _, element in ipairs(elements) do
  local member = find(element)
  if member then
    local _, payload = unpackMember(member)
    hits[#hits + 1] = element
    hits[#hits + 1] = payload and isWanted[payload] and 1 or 0
  end
end
return { position + #elements, elements[#elements], hits }
`,
  reply: (raw): Page<SearchHit> =>
    asPage(raw, (items) => {
      const hits: SearchHit[] = [];
      for (let i = 0; i < items.length; i += 2) {
        hits.push({ element: asBuffer(items[i]), isMatch: asNumber(items[i + 1]) === 1 });
      }
      return hits;
    }),
});
