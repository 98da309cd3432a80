import { asNumber } from "../reply.ts";
import { defineScript } from "../script.ts";

/** Drops everything that is delayed; returns how many messages there were. Frees in the background. */
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
