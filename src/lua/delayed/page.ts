import { asArray, asBuffer, asNumber, type RawReply } from "../script.ts";

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

export const START: Cursor = { position: 0, last: Buffer.alloc(0) };

/**
 * The head of a script that reads a page: the next `step` elements of the insertion order, which begin at
 * `position`. It needs the fragment `view`.
 */
export const elementsAt = /* lua */ `
position = tonumber(position)
if position > 0 and last ~= "" then
  local from = math.max(0, position - step)
  local passed = view(from, position - 1)
  local at = #passed
  while at > 0 and passed[at] ~= last do at = at - 1 end
  -- Not in this window: look further back next time, or begin anew.
  if at == 0 and from > 0 then return { from, last, {} } end
  position = at == 0 and 0 or from + at
end
local elements = view(position, position + step - 1)
if #elements == 0 then return false end
`;

export interface Page<Item> {
  readonly items: readonly Item[];
  /** Where the next page begins, or undefined after the last page. */
  readonly next: Cursor | undefined;
}

/** Reads a page: nil, or its cursor and its items. */
export function asPage<Item>(raw: RawReply, items: (raw: RawReply[]) => Item[]): Page<Item> {
  if (raw === null) return { items: [], next: undefined };
  const [position, last, list] = asArray(raw);
  return {
    items: items(asArray(list)),
    next: { position: asNumber(position), last: asBuffer(last) },
  };
}
