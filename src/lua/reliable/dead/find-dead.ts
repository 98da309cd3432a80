import { eachLetter } from "../../fragments/failed/each-letter.ts";
import { keyOf } from "../../fragments/message/key-of.ts";
import { defineScript } from "../../script.ts";
import { asDeadPage } from "./dead-page.ts";

/**
 * Returns the dead letters of one message among those behind `after`: with the address `wanted`, or with the business
 * key `key`; the other argument is empty. Looks at up to `limit` letters and about `maxBytes`.
 */
export const findDead = defineScript({
  name: "find-dead",
  keys: ["dead"],
  args: ["wanted", "key", "after", "last", "limit", "maxBytes"],
  needs: [eachLetter, keyOf],
  lua: /* lua */ `
local letters = {}
local cursor = eachLetter(after, last, tonumber(limit), tonumber(maxBytes), function(letter, entryId, fields)
  if letter.a ~= wanted and (key == "" or keyOf(letter.t or "") ~= key) then return end
  letters[#letters + 1] = entryId
  letters[#letters + 1] = fields
end)
return { cursor, letters }
`,
  reply: asDeadPage,
});
