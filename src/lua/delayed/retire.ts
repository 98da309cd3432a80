import { asFlag } from "../reply.ts";
import { defineScript } from "../script.ts";

/**
 * Announces that a transfer task ends, if that task moved messages last: deletes `mover`, and wakes all tasks. Returns
 * whether the task was the last mover.
 *
 * `0` on the channel means "look now", for Java clients as well.
 */
export const retire = defineScript({
  name: "retire",
  keys: ["mover"],
  args: ["channel", "task"],
  lua: /* lua */ `
if redis.pcall("GET", mover) ~= task then return 0 end
-- Publish first: if that is refused, nothing has changed, and nobody can look before the script has ended.
redis.call("PUBLISH", channel, 0)
redis.call("DEL", mover)
return 1
`,
  reply: asFlag,
});
