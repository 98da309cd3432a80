import { defineFragment } from "../fragment.ts";
import { clock } from "../fragments/clock.ts";

/** The most messages that a queue or partition remembers as handled: some 10 MB. */
export const MOST_HANDLED = 100_000;

/**
 * `noteHandled(group, process, keepFor, notes)`: notes that the group has handled messages. Each note is a list: the
 * message's address, its business key or an empty text, the number of the attempt, and how many milliseconds it took, or
 * an empty text. `keepFor`: how long notes are kept (milliseconds). Raises Redis's error if it refuses.
 *
 * A note is an entry of a stream, so its id tells when the message was handled. All have the same fields, whose names
 * Redis then stores only once per hundred. Each call drops old notes, whole blocks of them, so up to a hundred may stay
 * beyond their time; and those beyond ${MOST_HANDLED}. All go at the end of their time if no more messages are handled.
 */
export const noteHandled = defineFragment({
  keys: ["handled"],
  needs: [clock],
  lua: /* lua */ `
local function noteHandled(group, process, keepFor, notes)
  if #notes == 0 then return end
  -- XADD can trim by one of the two. It drops 10,000 entries at most.
  local isFull = redis.call("XLEN", handled) > ${MOST_HANDLED}
  local rule, bound = "MAXLEN", ${MOST_HANDLED}
  if not isFull then
    rule = "MINID"
    bound = string.format("%.0f", math.max(0, math.floor(clock() / 1000) - keepFor))
  end
  for i, note in ipairs(notes) do
    local fields = { "a", note[1], "k", note[2], "n", note[3], "d", note[4], "g", group, "c", process }
    if i == 1 then redis.call("XADD", handled, rule, "~", bound, "*", unpack(fields))
    else redis.call("XADD", handled, "*", unpack(fields)) end
  end
  redis.call("EXPIRE", handled, math.ceil(keepFor / 1000))
end
`,
});
