import { defineFragment } from "../../fragment.ts";
import { asRow, asText, type RawReply } from "../../reply.ts";
import { letter } from "./letter.ts";

/** How far a reader of the dead letters has come. */
export interface LetterCursor {
  /** The id of the letter that was read last; empty at the beginning. */
  readonly after: string;
  /** The id of the letter that was the newest at the beginning, where reading ends; empty at the beginning. */
  readonly last: string;
}

/** The cursor at the beginning. */
export const FIRST_LETTERS: LetterCursor = { after: "", last: "" };

/**
 * `eachLetter(after, last, limit, maxBytes, visit)`: calls `visit(letter, entryId, fields)` for the letters behind
 * `after`, oldest first, up to `limit` letters and about `maxBytes`. Returns the two values of the next
 * {@link LetterCursor}, or false after the last letter. {@link asLetterCursor} reads them.
 *
 * Reading ends at the letter that was the newest at the beginning. Otherwise a redrive might never end, since
 * messages that it puts back may die again meanwhile.
 */
export const eachLetter = defineFragment({
  keys: ["dead"],
  needs: [letter],
  lua: /* lua */ `
local function eachLetter(after, last, limit, maxBytes, visit)
  if last == "" then
    local newest = redis.call("XREVRANGE", dead, "+", "-", "COUNT", 1)[1]
    if not newest then return false end
    last = newest[1]
  end
  local seen, size = 0, 0
  while seen < limit and size < maxBytes do
    -- Letters may be large. So read a few at a time: as many as probably fit.
    local room = seen == 0 and 2 or math.ceil((maxBytes - size) * seen / size)
    local count = math.min(10, limit - seen, room)
    local found = redis.call("XRANGE", dead, after == "" and "-" or "(" .. after, last, "COUNT", count)
    for _, entry in ipairs(found) do
      for _, word in ipairs(entry[2]) do size = size + #word end
      visit(letterOf(entry[1], entry[2]), entry[1], entry[2])
      after = entry[1]
    end
    seen = seen + #found
    -- At the last letter do not ask for more: Redis refuses a range behind the greatest of all ids.
    if #found < count or after == last then return false end
  end
  return { after, last }
end
`,
});

/** Reads what `eachLetter` returned: the next cursor, or undefined at the end. */
export function asLetterCursor(raw: RawReply | undefined): LetterCursor | undefined {
  return Array.isArray(raw) ? asRow(raw, { after: asText, last: asText }) : undefined;
}
