import { earliestDue } from "../fragments/earliest-due.ts";
import { asDeadline, LAST_DEADLINE, replied } from "../fragments/message/replied.ts";
import { defineScript } from "../script.ts";

/**
 * Returns when the first of all delayed messages and retries is due, in epoch milliseconds: Infinity beyond the last
 * legal deadline, undefined if there are none.
 */
export const nextDue = defineScript({
  name: "next-due",
  keys: ["timeouts", "retries"],
  args: [],
  needs: [earliestDue, replied],
  lua: /* lua */ `
local due = earliestDue()
return due and replied(due) or false
`,
  reply: (raw) => {
    if (raw === null) return undefined;
    const due = asDeadline(raw);
    return due > LAST_DEADLINE ? Infinity : due;
  },
});
