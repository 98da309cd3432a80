import { asNumber } from "../reply.ts";
import { defineScript } from "../script.ts";

/** Drops all delayed messages; returns how many there were. Redis frees the memory in the background. */
export const clearDelayed = defineScript({
  name: "clear-delayed",
  keys: ["timeouts", "order", "compacted", "businessKeys"],
  args: [],
  lua: /* lua */ `
local count = redis.call("ZCARD", timeouts)
redis.call("UNLINK", timeouts, order, compacted, businessKeys)
return count
`,
  reply: asNumber,
});
