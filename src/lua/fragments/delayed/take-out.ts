import { defineFragment } from "../../fragment.ts";
import { ownKeys } from "./own-keys.ts";
import { unpackMember } from "../message/unpack-member.ts";

/**
 * `keysOf(members)`: the business keys whose index entries point to these messages. Reads only.
 * `takeOut(members, keys)`: removes messages from the ZSET, and then these keys from the index. If Redis refuses to
 * remove an entry, it stays and points to nothing, which does no harm.
 */
export const takeOut = defineFragment({
  keys: ["timeouts", "businessKeys"],
  needs: [ownKeys, unpackMember],
  lua: /* lua */ `
local function keysOf(members)
  local keys, ids = {}, {}
  for _, member in ipairs(members) do
    local id, _, key = unpackMember(member)
    if key then
      keys[#keys + 1] = key
      ids[#ids + 1] = id
    end
  end
  return ownKeys(keys, ids)
end
local function takeOut(members, keys)
  redis.call("ZREM", timeouts, unpack(members))
  if #keys > 0 then redis.pcall("HDEL", businessKeys, unpack(keys)) end
end
`,
});
