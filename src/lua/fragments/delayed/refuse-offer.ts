import { IN_PART } from "../../../failure.ts";
import { defineFragment } from "../../fragment.ts";

/**
 * `refuseOffer(refusal, members)`: the reply to an offer of these members that Redis has refused. If one of them is
 * delayed nevertheless, or Redis refuses to say, the error says that a part may be done: an earlier copy of the offer has
 * stored it.
 */
export const refuseOffer = defineFragment({
  keys: ["timeouts"],
  lua: /* lua */ `
local function refuseOffer(refusal, members)
  for _, member in ipairs(members) do
    local score = redis.pcall("ZSCORE", timeouts, member)
    local isUnknown = type(score) == "table" and not score.err:find("WRONGTYPE", 1, true)
    if type(score) == "string" or isUnknown then return { err = refusal.err .. "${IN_PART}" } end
  end
  return refusal
end
`,
});
