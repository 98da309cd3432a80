import { asNumber } from "../reply.ts";
import { defineScript } from "../script.ts";

/** Drops all ready messages; returns how many there were. Redis frees the memory in the background. */
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
