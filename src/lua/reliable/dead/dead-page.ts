import {
  asLetterCursor,
  eachLetter,
  type LetterCursor,
} from "../../fragments/failed/each-letter.ts";
import { unpackLetter, type Letter } from "../../fragments/failed/letter.ts";
import { asBuffers, asRow, asRows, asText, type RawReply } from "../../reply.ts";
import { defineScript } from "../../script.ts";

/** Some dead letters. */
export interface DeadPage {
  readonly letters: readonly Letter[];
  /** Where the next page begins; undefined after the last page. */
  readonly next: LetterCursor | undefined;
}

/** Returns up to `limit` dead letters and about `maxBytes` behind `after`, oldest first. */
export const deadPage = defineScript({
  name: "dead-page",
  keys: ["dead"],
  args: ["after", "last", "limit", "maxBytes"],
  needs: [eachLetter],
  lua: /* lua */ `
local letters = {}
local cursor = eachLetter(after, last, tonumber(limit), tonumber(maxBytes), function(_, entryId, fields)
  letters[#letters + 1] = entryId
  letters[#letters + 1] = fields
end)
return { cursor, letters }
`,
  reply: asDeadPage,
});

/** Reads a reply of a cursor and a list of entries, each with its id and fields. */
export function asDeadPage(raw: RawReply | undefined): DeadPage {
  const { next, letters } = asRow(raw, {
    next: asLetterCursor,
    letters: (rows) => asRows(rows, { entryId: asText, fields: asBuffers }),
  });
  return { next, letters: letters.map(({ entryId, fields }) => unpackLetter(entryId, fields)) };
}
