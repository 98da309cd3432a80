import { defineFragment } from "../../fragment.ts";

/**
 * Where in a partitioned queue things belong. The script's argument `buckets` has 1,024 bytes, and each is the
 * number of the partition that a bucket belongs to.
 *
 * `destinationOf(id)`: the partition of the message with this id. The bucket stands in the last 10 bits of an id of
 * ours; see `message.ts`. Of an id of any other length, and of bytes that have none, the last 10 bits count just so.
 */
export const destination = defineFragment({
  lua: /* lua */ `
local function destinationOf(id)
  local low, high = id:byte(#id) or 0, id:byte(#id - 1) or 0
  return buckets:byte(high % 4 * 256 + low + 1)
end
`,
});
