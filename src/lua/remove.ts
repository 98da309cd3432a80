import { addresses, find, forget, unpackMember } from "./fragments.ts";
import { asArray, asBuffer, asNumber, defineScript } from "./script.ts";

/**
 * Scripts that take delayed messages out. None may be sent twice, since their answer is about what
 * they themselves did: they go through a connection that never re-sends.
 */

const defineRemove = (name: string, isExact: boolean) =>
  defineScript({
    name,
    keys: ["timeouts", "order"],
    args: [],
    fragments: [addresses, find, ...(isExact ? [forget] : [])],
    lua: /* lua */ `
local removed = 0
for i = REST, #ARGV do
  local member = find(ARGV[i])
  if member then
    removed = removed + redis.call("ZREM", timeouts, member)
    ${isExact ? "forget(member)" : ""}
  end
end
return removed
`,
    reply: asNumber,
  });

/**
 * Removes the messages that the given elements of the insertion order stand for; answers how many
 * were still there. The elements stay behind, as those of moved messages do.
 */
export const remove = defineRemove("remove", false);

/** Removes the elements as well: for queues with `interop: "redisson"`. */
export const removeExact = defineRemove("remove-exact", true);

/**
 * Takes the oldest inserted messages out, `limit` at most, looking at `step` elements at most.
 * Answers their members, and whether elements are left.
 *
 * It pops the elements that it looks at, so what it finds dead is out of the way.
 */
export const pollOldest = defineScript({
  name: "poll-oldest",
  keys: ["timeouts", "order", "compacted"],
  args: ["limit", "step", "maxBytes"],
  fragments: [addresses, find],
  lua: /* lua */ `
local members, bytes = {}, 0
for _ = 1, step do
  if #members >= tonumber(limit) or bytes >= tonumber(maxBytes) then break end
  local element = redis.call("LPOP", compacted) or redis.call("LPOP", order)
  if not element then return { members, 0 } end
  local member = find(element)
  if member then
    redis.call("ZREM", timeouts, member)
    members[#members + 1] = member
    bytes = bytes + #member
  end
end
return { members, 1 }
`,
  reply: (raw) => {
    const [members, more] = asArray(raw);
    return { members: asArray(members).map(asBuffer), hasMore: asNumber(more) === 1 };
  },
});

/**
 * Moves the payload of the message inserted last to the head of a target LIST, due or not, looking
 * at `step` elements at most. Answers the payload (or nil), and whether elements are left.
 */
export const pollNewestTo = defineScript({
  name: "poll-newest-to",
  keys: ["timeouts", "order", "compacted", "target"],
  args: ["step"],
  fragments: [addresses, find, unpackMember],
  lua: /* lua */ `
for _ = 1, step do
  local list = order
  local element = redis.call("LINDEX", order, -1)
  if not element then
    list = compacted
    element = redis.call("LINDEX", compacted, -1)
  end
  if not element then return { false, 0 } end
  local member = find(element)
  local id, payload = nil, nil
  if member then id, payload = unpackMember(member) end
  if id then
    -- Pushed before it is removed: a push that is refused has changed nothing.
    redis.call("LPUSH", target, payload)
    redis.call("ZREM", timeouts, member)
  end
  redis.call("RPOP", list)
  if id then return { payload, 1 } end
end
return { false, 1 }
`,
  reply: (raw) => {
    const [payload, more] = asArray(raw);
    return {
      payload: Buffer.isBuffer(payload) ? payload : undefined,
      hasMore: asNumber(more) === 1,
    };
  },
});

/** Drops everything that is delayed; answers how many messages there were. Frees in the background. */
export const clear = defineScript({
  name: "clear",
  keys: ["timeouts", "order", "compacted", "ghosts"],
  args: [],
  lua: /* lua */ `
local count = redis.call("ZCARD", timeouts)
redis.call("UNLINK", timeouts, order, compacted, ghosts)
return count
`,
  reply: asNumber,
});

/** Drops everything that is ready; answers how many messages there were. */
export const clearTarget = defineScript({
  name: "clear-target",
  keys: ["target"],
  args: [],
  lua: /* lua */ `
local count = redis.call("LLEN", target)
redis.call("UNLINK", target)
return count
`,
  reply: asNumber,
});
