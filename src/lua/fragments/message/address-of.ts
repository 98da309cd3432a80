import { defineFragment } from "../../fragment.ts";

/**
 * `addressOf(score, id)`: the address of a message with any score, and an id of any length; see `packAddress` in
 * `message.ts`.
 */
export const addressOf = defineFragment({
  lua: /* lua */ `
local function addressOf(score, id)
  if score % 1 ~= 0 or score < 0 or score > 9007199254740991 then return struct.pack(">d", score) .. id end
  return struct.pack(">I4I4", math.floor(score / 4294967296), score % 4294967296) .. id
end
`,
});
