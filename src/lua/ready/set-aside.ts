import { asNumber } from "../reply.ts";
import { defineScript } from "../script.ts";

/**
 * Puts bytes that nobody can read into the quarantine LIST; returns how many are there.
 *
 * When memory is full Redis refuses only the first write of a script, and never a removal: hence the
 * LTRIM that trims nothing.
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
