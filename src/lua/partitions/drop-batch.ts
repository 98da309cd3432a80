import { journal } from "../fragments/partitions/journal.ts";
import { asNumber } from "../reply.ts";
import { defineScript } from "../script.ts";

/**
 * Drops the batch that is under way if it has this number; returns whether it had. All that is in it must have arrived.
 */
export const dropBatch = defineScript({
  name: "drop-batch",
  keys: ["journal"],
  args: ["number"],
  needs: [journal],
  lua: /* lua */ `
local open = openBatch()
if open == 0 or open ~= tonumber(number) then return 0 end
return redis.call("HDEL", journal, "rows")
`,
  reply: (raw) => asNumber(raw) === 1,
});
