import { asNumber } from "../reply.ts";
import { defineScript } from "../script.ts";

/** Puts payloads at the end of the ready LIST of a partition; returns the new length of the LIST. */
export const pushReady = defineScript({
  name: "push-ready",
  keys: ["ready"],
  args: [],
  each: ["payload"],
  lua: /* lua */ `
local length = 0
for each row do length = redis.call("RPUSH", ready, payload) end
return length
`,
  reply: asNumber,
});
