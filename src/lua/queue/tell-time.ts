import { asInstant, clock } from "../fragments/clock.ts";
import { defineScript } from "../script.ts";

/**
 * Replies with the server's time (epoch ms, with fractions). On a Cluster, it reaches the node that serves the queue:
 * TIME has no key, so the client sends it to any node.
 */
export const tellTime = defineScript({
  name: "tell-time",
  keys: ["ready"],
  args: [],
  needs: [clock],
  lua: /* lua */ `return clock()`,
  reply: asInstant,
});
