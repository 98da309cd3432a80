import { asNumber } from "../../reply.ts";
import { defineScript } from "../../script.ts";

/** Drops all that waits for a retry; returns how much that was. Frees in the background. */
export const clearRetries = defineScript({
  name: "clear-retries",
  keys: ["retries", "retrying"],
  args: [],
  lua: /* lua */ `
local count = redis.call("ZCARD", retries)
redis.call("UNLINK", retries, retrying)
return count
`,
  reply: asNumber,
});
