import { defineFragment } from "../../fragment.ts";

/**
 * Decides which partition a message belongs to. The script's argument `buckets` has 1,024 bytes: the number of the
 * partition for each bucket.
 *
 * `destinationOf(id)`: the partition of the message with this id. The bucket is the last 10 bits of an id; see
 * `message.ts`. For ids that other software made, and for any other bytes, the last 10 bits are used in the same way.
 */
export const destination = defineFragment({
  lua: /* lua */ `
local function destinationOf(id)
  local low, high = id:byte(#id) or 0, id:byte(#id - 1) or 0
  return buckets:byte(high % 4 * 256 + low + 1)
end
`,
});
