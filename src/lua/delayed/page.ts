import { asArray, asBuffer, asNumber, asRow, type RawReply } from "../reply.ts";

/**
 * Where a reader of the insertion order stands: how many elements it has passed, and the last of
 * them.
 *
 * Elements before it may vanish between two pages (trimmed, polled, compacted), which moves all that
 * follow forward. So a reader recognises its place by the last element, looking back from where it
 * was; if that has vanished too, it goes back to the start. It may then meet a message twice, but
 * misses none that stays.
 */
export interface Cursor {
  readonly position: number;
  readonly last: Buffer;
}

/** What the looks of one script may cost; see the fragment `locate`. */
export const BUDGET = 30;

export const START: Cursor = { position: 0, last: Buffer.alloc(0) };

/**
 * The body of a script that reads a page: it does `look` for the next elements of the insertion order, and
 * replies with what that puts into `items`. `isFull` ends the page.
 *
 * A page is `step` elements at most, and ends sooner when its looks have cost some 400 us: payloads may be large,
 * and an element of one of many equal deadlines may need a binary search. It needs the fragments `view`
 * and `findNext`.
 */
export const eachElement = (look: string) => /* lua */ `
position = tonumber(position)
if position > 0 and last ~= "" and view(position - 1, position - 1)[1] ~= last then
  local from = math.max(0, position - step)
  local passed = view(from, position - 1)
  local at = #passed
  while at > 0 and passed[at] ~= last do at = at - 1 end
  -- Not in this window: look further back next time, or begin anew.
  if at == 0 and from > 0 then return { from, last, {} } end
  position = at == 0 and 0 or from + at
end
local items, seen, isFull = {}, 0, false
while seen < tonumber(step) and not isFull do
  -- A few at a time, since each may be a whole member.
  local elements = view(position + seen, position + seen + math.min(10, step - seen) - 1)
  for _, element in ipairs(elements) do
    ${look}
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

export interface Page<Item> {
  readonly items: readonly Item[];
  /** Where the next page begins, or undefined after the last page. */
  readonly next: Cursor | undefined;
}

/** Reads a page: nil, or its cursor and its items. */
export function asPage<Item>(raw: RawReply, items: (raw: RawReply[]) => Item[]): Page<Item> {
  if (raw === null) return { items: [], next: undefined };
  const { items: list, ...next } = asRow(raw, {
    position: asNumber,
    last: asBuffer,
    items: asArray,
  });
  return { items: items(list), next };
}
