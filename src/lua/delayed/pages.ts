import { defineFragment } from "../fragment.ts";
import { replied } from "../fragments/deadline.ts";
import { findNext, spending } from "../places/delayed.ts";
import { unpackMember } from "../fragments/member.ts";
import { asArray, asBuffer, asFlag, asNumber, asRow, asRows, type RawReply } from "../reply.ts";
import { defineScript } from "../script.ts";
import { asMembers, type DelayedMember } from "./get.ts";

/**
 * The position of a reader in the insertion order: how many elements it has passed, and the last one of them.
 *
 * Elements in front of the reader's position may vanish between two pages (trimmed, polled, compacted), which shifts
 * all later elements forward. So a reader finds its position by the last element, searching back from its old position. If
 * that element has vanished too, the reader starts again. It may then see a message twice, but never misses one that
 * stays.
 */
export interface Cursor {
  readonly position: number;
  readonly last: Buffer;
}

/** Before the first element. */
export const START: Cursor = { position: 0, last: Buffer.alloc(0) };

/** A page of the insertion order. */
export interface Page<Item> {
  readonly items: readonly Item[];
  /** Where the next page begins, or undefined after the last page. */
  readonly next: Cursor | undefined;
}

/** How much one script may spend on look-ups; see the fragment `spending`. */
export const BUDGET = 30;

/**
 * `view(from, to)`: the elements at positions `from` to `to` (from 0, inclusive) of the insertion order, which is the
 * compacted list followed by the LIST.
 */
const view = defineFragment({
  keys: ["order", "compacted"],
  lua: /* lua */ `
local front = redis.call("LLEN", compacted)
local function view(from, to)
  local elements = {}
  if to < from then return elements end
  if from < front then elements = redis.call("LRANGE", compacted, from, to) end
  if to >= front then
    for _, element in ipairs(redis.call("LRANGE", order, math.max(from - front, 0), to - front)) do
      elements[#elements + 1] = element
    end
  end
  return elements
end
`,
});

/**
 * Returns the body of a script that reads a page: it runs `visit` for each of the next elements of the insertion order,
 * and replies with the `items` that `visit` has collected. `visit` may set `isFull` to end the page.
 *
 * A page has at most `step` elements. It ends sooner once its look-ups have cost some 400 us: payloads may be large,
 * and an element among many equal deadlines may need a binary search. Needs the fragments `view`, `findNext` and `spending`.
 */
const eachElement = (visit: string) => /* lua */ `
position = tonumber(position)
if position > 0 and last ~= "" and view(position - 1, position - 1)[1] ~= last then
  local from = math.max(0, position - step)
  local passed = view(from, position - 1)
  local at = #passed
  while at > 0 and passed[at] ~= last do at = at - 1 end
  -- Not in this window: search further back in the next script, or start again.
  if at == 0 and from > 0 then return { from, last, {} } end
  position = at == 0 and 0 or from + at
end
local items, seen, isFull = {}, 0, false
while seen < tonumber(step) and not isFull do
  -- A few at a time, since each element may be a whole member.
  local elements = view(position + seen, position + seen + math.min(10, step - seen) - 1)
  for _, element in ipairs(elements) do
    ${visit}
    seen, last = seen + 1, element
    if isFull or spent() > ${BUDGET} then
      isFull = true
      break
    end
  end
  if #elements == 0 then break end
end
if seen == 0 then return false end
return { position + seen, last, items }
`;

/** Reads the reply of a script made by {@link eachElement}. */
function asPage<Item>(raw: RawReply, items: (raw: RawReply[]) => Item[]): Page<Item> {
  if (raw === null) return { items: [], next: undefined };
  const { items: list, ...next } = asRow(raw, {
    position: asNumber,
    last: asBuffer,
    items: asArray,
  });
  return { items: items(list), next };
}

/** Returns the messages of up to `step` next elements of the insertion order; stops early at `maxBytes`. */
export const readPage = defineScript({
  name: "read-page",
  keys: ["timeouts", "order", "compacted"],
  args: ["position", "last", "step", "maxBytes"],
  needs: [findNext, replied, spending, view],
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
  needs: [findNext, spending, unpackMember, view],
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
