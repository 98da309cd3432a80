import { journal } from "../fragments/partitions/journal.ts";
import { asNumber } from "../reply.ts";
import { defineScript } from "../script.ts";

/** Drops the open batch if it has this number, and returns whether it had. All its rows must have arrived by then. */
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
