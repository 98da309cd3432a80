import { defineFragment } from "../../fragment.ts";

/**
 * The index of business keys is a HASH, key -> entry. An entry begins with the address of the delayed message that has
 * the key.
 *
 * `ownKeys(keys, ids)`: the keys whose entries point to the message with the id at the same position.
 */
export const ownKeys = defineFragment({
  keys: ["businessKeys"],
  lua: /* lua */ `
local function ownKeys(keys, ids)
  local own = {}
  if #keys == 0 then return own end
  for i, entry in ipairs(redis.call("HMGET", businessKeys, unpack(keys))) do
    if entry and entry:sub(9, 24) == ids[i] then own[#own + 1] = keys[i] end
  end
  return own
end
`,
});
