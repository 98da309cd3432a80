import { defineFragment } from "../../fragment.ts";
import { indexEntry } from "../message/index-entry.ts";

/** `ownKeys(keys, ids)`: the keys whose entries point to the message with the id at the same position. */
export const ownKeys = defineFragment({
  keys: ["businessKeys"],
  needs: [indexEntry],
  lua: /* lua */ `
local function ownKeys(keys, ids)
  local own = {}
  if #keys == 0 then return own end
  for i, entry in ipairs(redis.call("HMGET", businessKeys, unpack(keys))) do
    if pointsTo(entry, ids[i]) then own[#own + 1] = keys[i] end
  end
  return own
end
`,
});
