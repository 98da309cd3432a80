import { asDeadline, replied } from "../fragments/deadline.ts";
import { delayedWith, resolve } from "../fragments/key-index.ts";
import { asBuffer, asFlags, asNumber, asRow, asRows, type RawReply } from "../reply.ts";
import { defineScript } from "../script.ts";

/** A delayed message as scripts return it. */
export interface DelayedMember {
  readonly deadline: number;
  readonly member: Buffer;
}

/** Reads a list of deadlines, each followed by its member. */
export function asMembers(raw: RawReply | undefined): DelayedMember[] {
  return asRows(raw, { deadline: asDeadline, member: asBuffer });
}

/**
 * Returns the delayed messages that the rows name, by address or by business key, in the order of the rows; and how many
 * rows it has looked up: it stops early at `maxBytes`. O(log N) for each row.
 */
export const get = defineScript({
  name: "get",
  keys: ["timeouts", "businessKeys"],
  args: ["maxBytes"],
  each: ["id", "key"],
  needs: [resolve, replied],
  lua: /* lua */ `
local messages, bytes, looked = {}, 0, 0
for each row do
  if bytes >= tonumber(maxBytes) then break end
  local member, deadline = resolve(id, key)
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
