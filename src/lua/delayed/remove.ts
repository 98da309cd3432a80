import { byElements } from "../family.ts";
import type { Fragment } from "../fragment.ts";
import { forget } from "../fragments/forget.ts";
import { resolve, takeOut } from "../fragments/key-index.ts";
import { findNext } from "../fragments/locate.ts";
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
const defineRemove = <const Column extends string>(
  name: string,
  { columns, found, needs }: { columns: readonly Column[]; found: string; needs: Fragment },
) =>
  byElements((elements) =>
    defineScript({
      name: `${name}-${elements}`,
      keys: ["timeouts", "order", "compacted", "businessKeys"],
      args: [],
      each: columns,
      needs: [needs, takeOut, forget[elements]],
      lua: /* lua */ `
local members, isChosen, flags = {}, {}, {}
for each row do
  local member = ${found}
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
    }),
  );

/** Removes messages by their addresses or business keys; the other column is empty. */
export const remove = defineRemove("remove", {
  columns: ["id", "key"],
  found: "resolve(id, key)",
  needs: resolve,
});

/** Removes messages by their elements in the insertion order. */
export const removeElements = defineRemove("remove-elements", {
  columns: ["element"],
  found: "findNext(element)",
  needs: findNext,
});

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
