import { asLetterCursor, eachLetter } from "../../fragments/failed/each-letter.ts";
import { asArray, asNumber } from "../../reply.ts";
import { defineScript } from "../../script.ts";

/**
 * Removes the dead letters of the message with the address `wanted`: one for each group that failed to handle it.
 *
 * Looks at up to `limit` letters and about `maxBytes` behind `after`. Returns how many were removed, and the next
 * cursor.
 */
export const removeDead = defineScript({
  name: "remove-dead",
  keys: ["dead"],
  args: ["wanted", "after", "last", "limit", "maxBytes"],
  needs: [eachLetter],
  lua: /* lua */ `
local removed = 0
local cursor = eachLetter(after, last, tonumber(limit), tonumber(maxBytes), function(letter, entryId)
  if letter.a == wanted then removed = removed + redis.call("XDEL", dead, entryId) end
end)
return { removed, cursor }
`,
  reply: (raw) => {
    const [removed, next] = asArray(raw);
    return { removed: asNumber(removed), next: asLetterCursor(next) };
  },
});
