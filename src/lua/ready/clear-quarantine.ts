import { asNumber } from "../reply.ts";
import { defineScript } from "../script.ts";

/**
 * Drops the quarantine, unreadable members included; returns how many there were. Redis frees the memory in the
 * background.
 */
export const clearQuarantine = defineScript({
  name: "clear-quarantine",
  keys: ["quarantine", "unreadable"],
  args: [],
  lua: /* lua */ `
local count = redis.call("LLEN", quarantine) + redis.call("LLEN", unreadable)
redis.call("UNLINK", quarantine, unreadable)
return count
`,
  reply: asNumber,
});
