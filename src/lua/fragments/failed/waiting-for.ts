import { defineFragment } from "../../fragment.ts";
import { groupNames } from "../stream/group-names.ts";
import { retry } from "./retry.ts";

/**
 * `waitingFor(address)`: the retries of the message with this address, one for each group that is to handle it again.
 * Returns three lists: their names, due times and groups. O(log N) for each group of the stream.
 */
export const waitingFor = defineFragment({
  keys: ["stream", "retries"],
  needs: [groupNames, retry],
  lua: /* lua */ `
local groups = nil
local function waitingFor(address)
  groups = groups or groupNames()
  local names, dues, owners = {}, {}, {}
  for _, group in ipairs(groups) do
    local name = retryName(address, group)
    local due = redis.call("ZSCORE", retries, name)
    if due then
      names[#names + 1] = name
      dues[#dues + 1] = tonumber(due)
      owners[#owners + 1] = group
    end
  end
  return names, dues, owners
end
`,
});
