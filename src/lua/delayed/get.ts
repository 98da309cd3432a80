import { asDeadline, replied } from "../fragments/deadline.ts";
import { delayedWith } from "../fragments/key-index.ts";
import { locate } from "../fragments/locate.ts";
import { asBuffer, asFlags, asNumber, asRow, asRows, orNothing, type RawReply } from "../reply.ts";
import { defineScript } from "../script.ts";

/** A delayed message as scripts return it. */
export interface DelayedMember {
  readonly deadline: number;
  readonly member: Buffer;
}

const COLUMNS = { deadline: asDeadline, member: asBuffer };

/** Reads a list of deadlines, each followed by its member. */
export function asMembers(raw: RawReply | undefined): DelayedMember[] {
  return asRows(raw, COLUMNS);
}

const defineGet = (name: string, resolve: "locate" | "delayedWith") =>
  defineScript({
    name,
    keys: ["timeouts", "businessKeys"],
    args: ["wanted"],
    needs: [replied, { locate, delayedWith }[resolve]],
    lua: /* lua */ `
local member, deadline = ${resolve}(wanted)
return member and { replied(deadline), member } or false
`,
    reply: orNothing((raw): DelayedMember => asRow(raw, COLUMNS)),
  });

/** Returns the delayed message with this address, if there is one. O(log N). */
export const getById = defineGet("get-by-id", "locate");

/** Returns the delayed message with this business key, if there is one. O(log N). */
export const getByKey = defineGet("get-by-key", "delayedWith");

/**
 * Returns the delayed messages with these business keys, in the order of the keys, and how many keys it has looked up:
 * it stops early at `maxBytes`. O(log N) for each key.
 */
export const getByKeys = defineScript({
  name: "get-by-keys",
  keys: ["timeouts", "businessKeys"],
  args: ["maxBytes"],
  each: ["key"],
  needs: [delayedWith, replied],
  lua: /* lua */ `
local messages, bytes, looked = {}, 0, 0
for each row do
  if bytes >= tonumber(maxBytes) then break end
  local member, deadline = delayedWith(key)
  if member then
    messages[#messages + 1] = replied(deadline)
    messages[#messages + 1] = member
    bytes = bytes + #member
  end
  looked = looked + 1
end
return { looked, messages }
`,
  reply: (raw) => asRow(raw, { lookedUp: asNumber, messages: asMembers }),
});

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
