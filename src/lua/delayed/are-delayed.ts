import { delayedWith } from "../fragments/delayed/delayed-with.ts";
import { asFlags } from "../reply.ts";
import { defineScript } from "../script.ts";

/** Returns which of these business keys have a delayed message. */
export const areDelayed = defineScript({
  name: "are-delayed",
  keys: ["timeouts", "businessKeys"],
  args: [],
  each: ["key"],
  needs: [delayedWith],
  lua: /* lua */ `
local delayed = {}
for each row do delayed[#delayed + 1] = delayedWith(key) and 1 or 0 end
return delayed
`,
  reply: asFlags,
});
