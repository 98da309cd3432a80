import { find } from "../fragments/find.ts";
import { asDeadline, replied } from "../fragments/replied.ts";
import { unpackMember } from "../fragments/unpack-member.ts";
import { view } from "../fragments/view.ts";
import { asArray, asBuffer, asNumber, defineScript, type RawReply } from "../script.ts";
import { LAST_DEADLINE } from "../../queue/message.ts";

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

const placed = /* lua */ `
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

/** A delayed message as a page gives it. */
export interface PageMessage {
  readonly deadline: number;
  readonly member: Buffer;
}

/** The messages of the next `step` elements of the insertion order; stops early at `maxBytes`. */
export const readPage = defineScript({
  name: "read-page",
  keys: ["timeouts", "order", "compacted"],
  args: ["position", "last", "step", "maxBytes"],
  needs: [find, view, replied],
  lua: /* lua */ `${placed}
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
  reply: (raw): Page<PageMessage> =>
    page(raw, (items) => {
      const messages: PageMessage[] = [];
      for (let i = 0; i < items.length; i += 2) {
        messages.push({ deadline: asDeadline(items[i]), member: asBuffer(items[i + 1]) });
      }
      return messages;
    }),
});

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
  lua: /* lua */ `${placed}
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
    page(raw, (items) => {
      const hits: SearchHit[] = [];
      for (let i = 0; i < items.length; i += 2) {
        hits.push({ element: asBuffer(items[i]), isMatch: asNumber(items[i + 1]) === 1 });
      }
      return hits;
    }),
});

function page<Item>(raw: RawReply, items: (raw: RawReply[]) => Item[]): Page<Item> {
  if (raw === null) return { items: [], next: undefined };
  const [position, last, list] = asArray(raw);
  return {
    items: items(asArray(list)),
    next: { position: asNumber(position), last: asBuffer(last) },
  };
}

/** The earliest deadline in epoch milliseconds, Infinity if it is beyond all deadlines, or undefined. */
export const headDeadline = defineScript({
  name: "head-deadline",
  keys: ["timeouts"],
  args: [],
  lua: /* lua */ `return redis.call("ZRANGE", timeouts, 0, 0, "WITHSCORES")[2] or false`,
  reply: (raw) => {
    if (raw === null) return undefined;
    const deadline = asDeadline(raw);
    return deadline > LAST_DEADLINE ? Infinity : deadline;
  },
});
