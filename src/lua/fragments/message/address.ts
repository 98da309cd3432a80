import { defineFragment } from "../../fragment.ts";
import { bytes } from "./bytes.ts";

/**
 * Elements of the insertion-order LIST. Delayline writes addresses, deadline(8) | id(16), both big-endian. Java clients
 * write whole members, and so does Delayline with `interop: "redisson"`.
 *
 * `isAddress(element)`: whether an element is an address rather than a member. The deadline in an address begins with a
 * zero byte, since it is below 2^56, and so does the order stamp of the id. A member begins with the length of its id,
 * which is not 0. A member written by Redisson before 3.21.1 may begin with any byte, but if it has 24 bytes, its ninth
 * byte is 8.
 * `deadlineOf(address)`: the deadline in an address, or the score if that is not a legal deadline; see `packAddress` in
 * `message.ts`.
 */
export const address = defineFragment({
  needs: [bytes],
  lua: /* lua */ `
local function isAddress(element)
  return #element == 24 and element:byte(1) == 0 and element:byte(9) == 0
end
local function deadlineOf(address)
  if address:byte(1) > 0 then return (struct.unpack(">d", address)) end
  return wholeAt(address, 1)
end
`,
});
