import type { Fragment } from "../fragment.ts";
import { keysOfRetries, resolve } from "../places/key-index.ts";
import { findNext, keysOf, probing } from "../places/delayed.ts";
import { countDue } from "../places/due.ts";
import { leaving } from "../places/leaving.ts";
import { waitingRetries } from "../places/retries.ts";
import { asFlags, asNumber } from "../reply.ts";
import { defineScript } from "../script.ts";

/** How a row names a message. */
interface Finding<Column extends string> {
  readonly columns: readonly Column[];
  /** Finds the message: sets `place`, `name`, its name there, and `all`, its retries if it is retrying. */
  readonly found: string;
  /** The business key by which it was found, whose index entry points to it; false if it was not found so. */
  readonly via: string;
  readonly needs: Fragment;
}

/**
 * Removes the messages that the rows name; returns for each whether it was delayed or retrying. Only one caller gets
 * `true` for a message, which is then never delivered. A retrying message is removed for every group; where another
 * group has it in flight, it stays in flight.
 *
 * If the elements of the insertion order are addresses, they stay behind, like those of moved messages.
 *
 * Must not be sent twice, because its reply reports what this run did: use the connection that never resends.
 */
const defineRemove = <const Column extends string>(
  name: string,
  { columns, found, via, needs }: Finding<Column>,
) =>
  defineScript({
    name,
    keys: ["businessKeys"],
    args: ["elementsAre"],
    each: columns,
    needs: [needs, keysOf, leaving, probing],
    rarely: [keysOfRetries],
    lua: /* lua */ `
local names, places, entries, keys, others, isChosen, flags = {}, {}, {}, {}, {}, {}, {}
for each row do
  local place, name, all, _ = nil, nil, nil, nil
${found}
  local isFirst = name and not isChosen[name]
  if isFirst then
    isChosen[name] = true
    if not names[place] then names[place], places[#places + 1] = {}, place end
    local leaving, key = names[place], ${via}
    for _, one in ipairs(all or {}) do leaving[#leaving + 1], entries[#entries + 1] = one.name, one end
    if not all then
      leaving[#leaving + 1] = name
      if key then keys[#keys + 1] = key else others[#others + 1] = name end
    end
  end
  flags[#flags + 1] = isFirst and 1 or 0
end
for _, key in ipairs(#others > 0 and keysOf(others) or {}) do keys[#keys + 1] = key end
for _, key in ipairs(#entries > 0 and rare().keysOfRetries(entries) or {}) do keys[#keys + 1] = key end
mayLeave(places)
for _, place in ipairs(places) do leave(place, names[place], elementsAre) end
-- If it stays, an entry points to nothing.
if #keys > 0 then redis.pcall("HDEL", businessKeys, unpack(keys)) end
return flags
`,
    reply: asFlags,
  });

/** Removes messages by their addresses or business keys; the other column is empty. */
export const remove = defineRemove("remove", {
  columns: ["id", "key"],
  found: "  place, name, _, all = resolve(id, key)",
  via: `key ~= "" and key`,
  needs: resolve,
});

/** Removes messages by their elements in the insertion order. */
export const removeElements = defineRemove("remove-elements", {
  columns: ["element"],
  found: `  place, name = "delayed", findNext(element)`,
  via: "false",
  needs: findNext,
});

/** Returns the number of delayed messages, also of those that wait for their turn. O(1). */
export const sizeOfDelayed = defineScript({
  name: "size-of-delayed",
  keys: ["retries"],
  args: [],
  needs: [countDue],
  lua: /* lua */ `return countDue(retries)`,
  reply: asNumber,
});

/**
 * Drops all delayed messages, also those that wait for their turn; returns how many there were. Redis frees the memory in the
 * background. While there are others, which may hold keys, the index stays: its other entries point to nothing, and tidying
 * removes them. So do turns, while retries wait.
 */
export const clearDelayed = defineScript({
  name: "clear-delayed",
  keys: ["timeouts", "order", "compacted", "businessKeys", "room", "turns", "lanes", "resting"],
  args: [],
  needs: [countDue],
  rarely: [waitingRetries],
  lua: /* lua */ `
local count, waiting = redis.call("ZCARD", timeouts), redis.call("HLEN", room)
local gone = { timeouts, order, compacted }
if countDue(timeouts) == waiting then gone[#gone + 1] = businessKeys end
if waiting > 0 then gone[#gone + 1] = room end
if waiting > 0 and rare().waitingRetries() == 0 then
  for _, key in ipairs({ turns, lanes, resting }) do gone[#gone + 1] = key end
end
redis.call("UNLINK", unpack(gone))
return count + waiting
`,
  reply: asNumber,
});
