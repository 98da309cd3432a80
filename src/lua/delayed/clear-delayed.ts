import { asNumber, defineScript } from "../script.ts";

/** Drops everything that is delayed; answers how many messages there were. Frees in the background. */
export const clearDelayed = defineScript({
  name: "clear-delayed",
  keys: ["timeouts", "order", "compacted", "index"],
  args: [],
  lua: /* lua */ `
local count = redis.call("ZCARD", timeouts)
redis.call("UNLINK", timeouts, order, compacted, index)
return count
`,
  reply: asNumber,
});
