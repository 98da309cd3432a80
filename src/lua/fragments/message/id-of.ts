import { defineFragment } from "../../fragment.ts";

/** `idOf(address)`: the id of a message, which follows the deadline in its address; see `packAddress` in `message.ts`. */
export const idOf = defineFragment({
  lua: /* lua */ `
local function idOf(address)
  return address:sub(9)
end
`,
});
