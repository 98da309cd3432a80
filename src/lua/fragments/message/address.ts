import { defineFragment } from "../../fragment.ts";
import { bytes } from "./bytes.ts";

/**
 * Elements of the order LIST. Ours are addresses: deadline(8) | id(16), both big-endian. Java's are
 * members, and so are ours in a queue with `interop: "redisson"`.
 *
 * `deadlineOf(address)`: its deadline, or the score of a member that nobody could have offered; see
 * `packAddress` in `message.ts`.
 * `isAddress(element)`: an address begins with 0 (deadlines are below 2^56), and so does the order
 * stamp in it. A member begins with its id's length; one of before 3.21.1 may begin with anything,
 * but where it has 24 bytes its ninth is 8.
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
