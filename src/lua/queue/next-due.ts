import { asDeadline, LAST_DEADLINE, replied } from "../fragments/deadline.ts";
import { earliestDue } from "../places/due.ts";
import type { RawReply } from "../reply.ts";
import { defineScript } from "../script.ts";

/** Returns the earliest deadline (epoch ms); Infinity if it never comes, undefined if nothing is delayed. */
export const headDeadline = defineScript({
  name: "head-deadline",
  keys: ["retries"],
  args: [],
  needs: [earliestDue, replied],
  lua: /* lua */ `
local due = earliestDue(retries)
return due and replied(due) or false
`,
  reply: asNext,
});

/** The same for all delayed messages and retries. */
export const nextDue = defineScript({
  name: "next-due",
  keys: ["timeouts"],
  args: [],
  needs: [earliestDue, replied],
  lua: /* lua */ `
local due = earliestDue()
return due and replied(due) or false
`,
  reply: asNext,
});

/**
 * The same of a queue with a flow: if messages wait for their turn, also the instant at which the mover has to look at
 * them.
 */
export const nextTurn = defineScript({
  name: "next-turn",
  keys: ["flow", "turns"],
  args: [],
  needs: [earliestDue, replied],
  lua: /* lua */ `
local due, look = earliestDue(), tonumber(redis.pcall("HGET", flow, "look") or nil)
if look and redis.call("EXISTS", turns) == 1 then due = math.min(due or look, look) end
return due and replied(due) or false
`,
  reply: asNext,
});

function asNext(raw: RawReply): number | undefined {
  if (raw === null) return undefined;
  const deadline = asDeadline(raw);
  return deadline > LAST_DEADLINE ? Infinity : deadline;
}
