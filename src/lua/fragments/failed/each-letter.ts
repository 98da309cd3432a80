import { defineFragment } from "../../fragment.ts";
import { asRow, asText, type RawReply } from "../../reply.ts";
import { letter } from "./letter.ts";

/** Where a reader of the dead letters stands. */
export interface LetterCursor {
  /** The letter that it has read last; empty at the beginning. */
  readonly after: string;
  /** The letter that was the newest when it began; empty at the beginning. It does not go further. */
  readonly last: string;
}

export const FIRST_LETTERS: LetterCursor = { after: "", last: "" };

/**
 * `eachLetter(after, last, limit, maxBytes, visit)`: calls `visit(letter, entryId, fields)` for the letters behind
 * `after`, oldest first, `limit` at most and about `maxBytes`; returns what an {@link LetterCursor} for the
 * next ones holds, or false where there are none. {@link asLetterCursor} reads it.
 *
 * It ends at the letter that was the newest when the reader began: where letters are put back as they are read,
 * some may die again, and reading would have no end.
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
    -- A few at a time, since each may be large: as many as there is probably room for.
    local room = seen == 0 and 2 or math.ceil((maxBytes - size) * seen / size)
    local count = math.min(10, limit - seen, room)
    local found = redis.call("XRANGE", dead, after == "" and "-" or "(" .. after, last, "COUNT", count)
    for _, entry in ipairs(found) do
      for _, word in ipairs(entry[2]) do size = size + #word end
      visit(letterOf(entry[1], entry[2]), entry[1], entry[2])
      after = entry[1]
    end
    seen = seen + #found
    -- Nothing is behind the last, and what is behind the greatest of all ids may not be asked.
    if #found < count or after == last then return false end
  end
  return { after, last }
end
`,
});

/** Reads what the fragment `eachLetter` returns: where to go on, or undefined at the end. */
export function asLetterCursor(raw: RawReply | undefined): LetterCursor | undefined {
  return Array.isArray(raw) ? asRow(raw, { after: asText, last: asText }) : undefined;
}
