import { asNumber } from "../reply.ts";
import { defineScript } from "../script.ts";

/**
 * Puts bytes that nobody can read into a quarantine LIST; returns its new length.
 *
 * When memory is full, Redis refuses only the first write of a script, and never a removal. So an LTRIM that trims
 * nothing lets the push pass.
 */
export const setAside = defineScript({
  name: "set-aside",
  keys: ["quarantine"],
  args: ["bytes"],
  lua: /* lua */ `
redis.call("LTRIM", quarantine, 0, -1)
return redis.call("RPUSH", quarantine, bytes)
`,
  reply: asNumber,
});
