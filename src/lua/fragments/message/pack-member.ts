import { defineFragment } from "../../fragment.ts";

/** `packMember(id, payload, trailer)`: the ZSET member of a message; see `packMember` in `message.ts`. */
export const packMember = defineFragment({
  lua: /* lua */ `
local function packMember(id, payload, trailer)
  return string.char(#id) .. id .. struct.pack("<I8", #payload) .. payload .. trailer
end
`,
});
