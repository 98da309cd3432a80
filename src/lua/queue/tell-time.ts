import { asInstant, clock } from "../fragments/clock.ts";
import { defineScript } from "../script.ts";

/**
 * The server's time (epoch ms, with fractions). On Cluster it is that of the node which serves the queue: a TIME
 * names no key, and so goes to any node.
 */
export const tellTime = defineScript({
  name: "tell-time",
  keys: ["ready"],
  args: [],
  needs: [clock],
  lua: /* lua */ `return clock()`,
  reply: asInstant,
});
