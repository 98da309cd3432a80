import { asNumber } from "../../reply.ts";
import { defineScript } from "../../script.ts";

/** Returns the number of delayed messages and retries at one instant, so that none is counted twice. O(1). */
export const sizeWithRetries = defineScript({
  name: "size-with-retries",
  keys: ["timeouts", "retries"],
  args: [],
  lua: /* lua */ `return redis.call("ZCARD", timeouts) + redis.call("ZCARD", retries)`,
  reply: asNumber,
});
