import { asArray, asBuffer, asNumber, asRow, type RawReply } from "../reply.ts";

/**
 * The position of a reader in the insertion order: how many elements it has passed, and the last one of them.
 *
 * Elements in front of the reader's position may vanish between two pages (trimmed, polled, compacted), which shifts
 * all later elements forward. So a reader finds its place by the last element, searching back from its old position. If
 * that element has vanished too, the reader starts again. It may then see a message twice, but never misses one that
 * stays.
 */
export interface Cursor {
  readonly position: number;
  readonly last: Buffer;
}

/** How much one script may spend on look-ups; see `spent()` in the fragment `locate`. */
export const BUDGET = 30;

/** Before the first element. */
export const START: Cursor = { position: 0, last: Buffer.alloc(0) };

/**
 * Returns the body of a script that reads a page: it runs `visit` for each of the next elements of the insertion order,
 * and replies with the `items` that `visit` has collected. `visit` may set `isFull` to end the page.
 *
 * A page has at most `step` elements. It ends sooner once its look-ups have cost some 400 us: payloads may be large,
 * and an element among many equal deadlines may need a binary search. Needs the fragments `view` and `findNext`.
 */
export const eachElement = (visit: string) => /* lua */ `
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

/** A page of the insertion order. */
export interface Page<Item> {
  readonly items: readonly Item[];
  /** Where the next page begins, or undefined after the last page. */
  readonly next: Cursor | undefined;
}

/** Reads the reply of a script made by {@link eachElement}. */
export function asPage<Item>(raw: RawReply, items: (raw: RawReply[]) => Item[]): Page<Item> {
  if (raw === null) return { items: [], next: undefined };
  const { items: list, ...next } = asRow(raw, {
    position: asNumber,
    last: asBuffer,
    items: asArray,
  });
  return { items: items(list), next };
}
