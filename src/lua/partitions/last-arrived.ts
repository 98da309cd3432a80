import { asNumber } from "../reply.ts";
import { defineScript } from "../script.ts";

/** Returns the number of the last batch that has arrived from `source`; 0 if none has. */
export const lastArrived = defineScript({
  name: "last-arrived",
  keys: ["arrivals"],
  args: ["source"],
  lua: /* lua */ `return redis.call("HGET", arrivals, source) or 0`,
  reply: asNumber,
});
