import { asNumber } from "../reply.ts";
import { defineScript } from "../script.ts";

/** Drops everything that is ready; returns how many messages there were. */
export const clearReady = defineScript({
  name: "clear-ready",
  keys: ["ready"],
  args: [],
  lua: /* lua */ `
local count = redis.call("LLEN", ready)
redis.call("UNLINK", ready)
return count
`,
  reply: asNumber,
});
