import {
  asLetterCursor,
  eachLetter,
  type LetterCursor,
} from "../../fragments/failed/each-letter.ts";
import { unpackLetter, type Letter } from "../../fragments/failed/letter.ts";
import { asArray, asBuffer, defineScript } from "../../script.ts";

/** Some dead letters. */
export interface DeadPage {
  readonly letters: readonly Letter[];
  /** Where the next page begins, or undefined after the last. */
  readonly next: LetterCursor | undefined;
}

/** The dead letters behind `after`, oldest first: `limit` at most, and about `maxBytes`. */
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
  reply: (raw): DeadPage => {
    const [next, words] = asArray(raw);
    const letters: Letter[] = [];
    const list = asArray(words);
    for (let i = 0; i < list.length; i += 2) {
      const entryId = asBuffer(list[i]).toString();
      letters.push(unpackLetter(entryId, asArray(list[i + 1]).map(asBuffer)));
    }
    return { letters, next: asLetterCursor(next) };
  },
});
