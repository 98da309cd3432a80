import { defineFragment } from "../fragment.ts";
import { asBuffers, asNumber } from "../reply.ts";
import { defineScript } from "../script.ts";
import { may } from "../fragments/may.ts";

/**
 * Puts unreadable bytes into a quarantine LIST; returns its new length.
 */
export const quarantineBytes = defineScript({
  name: "quarantine-bytes",
  keys: ["quarantine"],
  args: ["bytes"],
  needs: [may],
  lua: /* lua */ `
may("LTRIM", quarantine)
return redis.call("RPUSH", quarantine, bytes)
`,
  reply: asNumber,
});

/** Returns the elements of a LIST from `position` on: up to `step`, and about `maxBytes`. */
export const listPage = defineScript({
  name: "list-page",
  keys: ["list"],
  args: ["position", "step", "maxBytes"],
  lua: /* lua */ `
local elements, bytes = {}, 0
step, maxBytes = tonumber(step), tonumber(maxBytes)
while #elements < step and bytes < maxBytes do
  -- A few at a time, since each element may be large.
  local count = math.min(10, step - #elements)
  local from = position + #elements
  local found = redis.call("LRANGE", list, from, from + count - 1)
  for _, element in ipairs(found) do
    elements[#elements + 1] = element
    bytes = bytes + #element
  end
  if #found < count then break end
end
return elements
`,
  reply: asBuffers,
});

/**
 * Moves payloads from the quarantine to the end of the ready LIST, oldest first: up to `limit`, and about `maxBytes`.
 * Returns how many.
 *
 * No rollback: payloads are pushed before they are removed. A refused push has then changed nothing.
 *
 * Must not be sent twice, because its reply reports what this run did: use the connection that never resends.
 */
export const requeue = defineScript({
  name: "requeue",
  keys: ["quarantine", "ready"],
  args: ["limit", "maxBytes"],
  needs: [may],
  lua: /* lua */ `
may("LTRIM", quarantine)
local payloads, bytes = {}, 0
while #payloads < tonumber(limit) and bytes < tonumber(maxBytes) do
  local payload = redis.call("LINDEX", quarantine, #payloads)
  if not payload then break end
  payloads[#payloads + 1] = payload
  bytes = bytes + #payload
end
if #payloads == 0 then return 0 end
redis.call("RPUSH", ready, unpack(payloads))
redis.call("LTRIM", quarantine, #payloads, -1)
return #payloads
`,
  reply: asNumber,
});

/**
 * Drops the quarantine, unreadable members included; returns how many there were. Redis frees the memory in the
 * background.
 */
export const clearQuarantine = defineScript({
  name: "clear-quarantine",
  keys: ["quarantine", "unreadable"],
  args: [],
  lua: /* lua */ `
local count = redis.call("LLEN", quarantine) + redis.call("LLEN", unreadable)
redis.call("UNLINK", quarantine, unreadable)
return count
`,
  reply: asNumber,
});

/**
 * `elementAt(position, digest)`: the element at a position of the quarantine, if it has this SHA-1 digest: another one is
 * there once one before it has left. Positions and digests stand for payloads, which have no ids.
 */
const elementAt = defineFragment({
  keys: ["quarantine"],
  lua: /* lua */ `
local function elementAt(position, digest)
  local element = redis.call("LINDEX", quarantine, position)
  return element and redis.sha1hex(element) == digest and element
end
`,
});

/** Counts the elements of a quarantine LIST that still are at these positions. */
export const countQuarantined = defineScript({
  name: "count-quarantined",
  keys: ["quarantine"],
  args: [],
  each: ["position", "digest"],
  needs: [elementAt],
  lua: /* lua */ `
local count = 0
for each row do if elementAt(position, digest) then count = count + 1 end end
return count
`,
  reply: asNumber,
});

/**
 * Moves payloads at these positions of the quarantine, given in ascending order, to the end of the ready LIST; returns how
 * many. Each payload is overwritten with `mark`, which nothing else is equal to; then all marks go at once.
 *
 * No rollback: what overwrites and removes is tried first, without an effect, and payloads are pushed before they are
 * removed.
 *
 * Must not be sent twice: use the connection that never resends.
 */
export const requeueQuarantined = defineScript({
  name: "requeue-quarantined",
  keys: ["quarantine", "ready"],
  args: ["mark"],
  each: ["position", "digest"],
  needs: [elementAt],
  lua: /* lua */ `
redis.call("LREM", quarantine, 1, mark)
local payloads, positions = {}, {}
for each row do
  local payload = elementAt(position, digest)
  if payload then
    payloads[#payloads + 1] = payload
    positions[#positions + 1] = position
  end
end
if #payloads == 0 then return 0 end
redis.call("LSET", quarantine, positions[1], payloads[1])
redis.call("RPUSH", ready, unpack(payloads))
for _, position in ipairs(positions) do redis.call("LSET", quarantine, position, mark) end
redis.call("LREM", quarantine, #payloads, mark)
return #payloads
`,
  reply: asNumber,
});

/** Removes the elements at these positions of a quarantine LIST for good; returns how many. As `requeueQuarantined`. */
export const removeQuarantined = defineScript({
  name: "remove-quarantined",
  keys: ["quarantine"],
  args: ["mark"],
  each: ["position", "digest"],
  needs: [elementAt],
  lua: /* lua */ `
redis.call("LREM", quarantine, 1, mark)
local count = 0
for each row do
  if elementAt(position, digest) then
    redis.call("LSET", quarantine, position, mark)
    count = count + 1
  end
end
if count > 0 then redis.call("LREM", quarantine, count, mark) end
return count
`,
  reply: asNumber,
});
