import { asNumber } from "../../reply.ts";
import { defineScript } from "../../script.ts";

/** Removes all dead letters; returns how many. Redis frees their memory in the background. */
export const clearDead = defineScript({
  name: "clear-dead",
  keys: ["dead"],
  args: [],
  lua: /* lua */ `
local count = redis.call("XLEN", dead)
redis.call("UNLINK", dead)
return count
`,
  reply: asNumber,
});
