import { asNumber } from "../../reply.ts";
import { defineScript } from "../../script.ts";

/** Removes all retries; returns how many. Redis frees their memory in the background. */
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
