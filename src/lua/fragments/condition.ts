import { defineFragment } from "../fragment.ts";

/**
 * Conditions in the trailer of a message, which the move asks; `condition.ts` in `queue/message/` documents the bytes.
 *
 * `failing(guard, within, deadline, now)`: why the message must not be delivered: 1 if its guard does not hold, 2 if it is
 * too late; nil if it may be delivered. `deadline` is needed only with `within`. `now` is what `clock()` returned.
 *
 * The guard names its key without the `keyPrefix` of the clients, which stands before the queue's own keys.
 *
 * Whatever Redis does not say lets the message through: a key of another type, one that an ACL hides or that another
 * node holds, and bytes that are no guard. A message that comes without need says "look again"; a dropped one would be
 * lost.
 */
export const condition = defineFragment({
  keys: ["timeouts"],
  lua: /* lua */ `
local function holds(guard)
  if #guard < 5 then return true end
  local test, keyLength, fieldLength = struct.unpack("<BI2I2", guard)
  local keyEnd = 5 + keyLength
  local fieldEnd = keyEnd + fieldLength
  if test > 7 or fieldEnd > #guard then return true end
  local prefix = timeouts:match("^(.-)redisson_delay_queue_timeout:") or ""
  local key, field, found = prefix .. guard:sub(6, keyEnd), guard:sub(keyEnd + 1, fieldEnd), nil
  if test >= 4 then
    found = redis.pcall(test < 6 and "HGET" or "HEXISTS", key, field)
  else
    found = redis.pcall(test < 2 and "GET" or "EXISTS", key)
  end
  if type(found) == "table" then return true end
  if test % 4 < 2 then return (found == guard:sub(fieldEnd + 1)) == (test % 4 == 0) end
  return (found == 1) == (test % 4 == 2)
end
local function failing(guard, within, deadline, now)
  if within and now / 1000 > deadline + within then return 2 end
  if guard and not holds(guard) then return 1 end
  return nil
end
`,
});
