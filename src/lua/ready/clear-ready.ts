import { asNumber, defineScript } from "../script.ts";

/** Drops everything that is ready; answers how many messages there were. */
export const clearReady = defineScript({
  name: "clear-ready",
  keys: ["target"],
  args: [],
  lua: /* lua */ `
local count = redis.call("LLEN", target)
redis.call("UNLINK", target)
return count
`,
  reply: asNumber,
});
