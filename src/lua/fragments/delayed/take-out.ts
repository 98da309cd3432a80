import { defineFragment } from "../../fragment.ts";
import { ownKeys } from "./own-keys.ts";
import { unpackMember } from "../message/unpack-member.ts";

/**
 * `takeOut(members)`: removes messages from the ZSET, and then from the index of business keys. If Redis refuses to
 * remove an entry, it stays and points to nothing, which does no harm.
 */
export const takeOut = defineFragment({
  keys: ["timeouts", "businessKeys"],
  needs: [ownKeys, unpackMember],
  lua: /* lua */ `
local function takeOut(members)
  local keys, ids = {}, {}
  for _, member in ipairs(members) do
    local id, _, key = unpackMember(member)
    if key then
      keys[#keys + 1] = key
      ids[#ids + 1] = id
    end
  end
  local own = ownKeys(keys, ids)
  redis.call("ZREM", timeouts, unpack(members))
  if #own > 0 then redis.pcall("HDEL", businessKeys, unpack(own)) end
end
`,
});
