import { defineFragment } from "../../fragment.ts";

/**
 * `packAddress(deadline, member)`: the address of a member with an id of 16 bytes and a legal deadline; see
 * `packAddress` in `message.ts`.
 */
export const packAddress = defineFragment({
  lua: /* lua */ `
local function packAddress(deadline, member)
  return struct.pack(">I4I4", math.floor(deadline / 4294967296), deadline % 4294967296) .. member:sub(2, 17)
end
`,
});
