import { asFlag } from "../reply.ts";
import { defineScript } from "../script.ts";

/**
 * A transfer task that moved messages last takes its leave: it strikes its name out, and calls those
 * that stand by to look now. Returns whether it was the last mover.
 *
 * `0` on the channel means "look now", to Java clients as well.
 */
export const retire = defineScript({
  name: "retire",
  keys: ["mover"],
  args: ["channel", "task"],
  lua: /* lua */ `
if redis.pcall("GET", mover) ~= task then return 0 end
redis.call("DEL", mover)
redis.call("PUBLISH", channel, 0)
return 1
`,
  reply: asFlag,
});
