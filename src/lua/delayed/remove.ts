import { byElements, type Elements } from "../family.ts";
import { forget } from "../fragments/forget.ts";
import { delayedWith, takeOut } from "../fragments/key-index.ts";
import { findNext, locate } from "../fragments/locate.ts";
import { asFlags, asNumber } from "../reply.ts";
import { defineScript } from "../script.ts";

/**
 * Removes the messages that the rows name; returns for each whether it was delayed. Only one caller gets `true` for a
 * message, which is then never delivered.
 *
 * If the elements of the insertion order are addresses, they stay behind, like those of moved messages.
 *
 * Must not be sent twice, because its reply reports what this run did: use the connection that never resends.
 */
const defineRemove = (
  name: string,
  resolve: "findNext" | "locate" | "delayedWith",
  elements: Elements,
) =>
  defineScript({
    name: `remove-by-${name}-${elements}`,
    keys: ["timeouts", "order", "compacted", "businessKeys"],
    args: [],
    each: ["wanted"],
    needs: [takeOut, { findNext, locate, delayedWith }[resolve], forget[elements]],
    lua: /* lua */ `
local members, isChosen, flags = {}, {}, {}
for each row do
  local member = ${resolve}(wanted)
  local isFirst = member and not isChosen[member]
  if isFirst then
    isChosen[member] = true
    members[#members + 1] = member
  end
  flags[#flags + 1] = isFirst and 1 or 0
end
if #members > 0 then
  takeOut(members, keysOf(members))
  forget(members)
end
return flags
`,
    reply: asFlags,
  });

/** Removes messages by their elements in the insertion order. */
export const removeByElement = byElements((elements) =>
  defineRemove("element", "findNext", elements),
);

/** Removes messages by their addresses, with ids of 8 or 16 bytes. */
export const removeById = byElements((elements) => defineRemove("id", "locate", elements));

/** Removes messages by their business keys. */
export const removeByKey = byElements((elements) => defineRemove("key", "delayedWith", elements));

/** Drops all delayed messages; returns how many there were. Redis frees the memory in the background. */
export const clearDelayed = defineScript({
  name: "clear-delayed",
  keys: ["timeouts", "order", "compacted", "businessKeys"],
  args: [],
  lua: /* lua */ `
local count = redis.call("ZCARD", timeouts)
redis.call("UNLINK", timeouts, order, compacted, businessKeys)
return count
`,
  reply: asNumber,
});
