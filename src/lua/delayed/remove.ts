import { delayedWith } from "../fragments/delayed-with.ts";
import { find } from "../fragments/find.ts";
import { forget } from "../fragments/forget.ts";
import { locate } from "../fragments/locate.ts";
import { takeOut } from "../fragments/take-out.ts";
import { unpackMember } from "../fragments/unpack-member.ts";
import { asArray, asBuffer, asNumber, defineScript } from "../script.ts";

/**
 * Scripts that take delayed messages out. None may be sent twice, since their answer is about what
 * they themselves did: they go through a connection that never re-sends.
 */

/**
 * Removes the messages that the rows stand for; answers for each whether it was there. Whoever
 * gets `true` has removed it, and nobody will deliver it.
 *
 * Unless `isExact`, the elements of the insertion order stay behind, as those of moved messages do.
 */
const defineRemove = (name: string, resolve: "find" | "locate" | "delayedWith", isExact: boolean) =>
  defineScript({
    name: `remove-by-${name}${isExact ? "-exact" : ""}`,
    keys: ["timeouts", "order", "compacted", "index"],
    args: [],
    each: ["wanted"],
    needs: [takeOut, { find, locate, delayedWith }[resolve], ...(isExact ? [forget] : [])],
    lua: /* lua */ `
local members, isChosen, answers = {}, {}, {}
for each row do
  local member = ${resolve}(wanted)
  local isFirst = member and not isChosen[member]
  if isFirst then
    isChosen[member] = true
    members[#members + 1] = member
  end
  answers[#answers + 1] = isFirst and 1 or 0
end
if #members > 0 then
  takeOut(members)
  ${isExact ? "forget(members)" : ""}
end
return answers
`,
    reply: (raw) => asArray(raw).map((flag) => asNumber(flag) === 1),
  });

export type RemoveScript = ReturnType<typeof defineRemove>;

/** By elements of the insertion order. */
export const removeByElement = defineRemove("element", "find", false);
export const removeByElementExact = defineRemove("element", "find", true);

/** By addresses, with ids of 8 or 16 bytes. */
export const removeById = defineRemove("id", "locate", false);
export const removeByIdExact = defineRemove("id", "locate", true);

/** By business keys. */
export const removeByKey = defineRemove("key", "delayedWith", false);
export const removeByKeyExact = defineRemove("key", "delayedWith", true);

/**
 * Takes the oldest inserted messages out, `limit` at most, looking at `step` elements at most.
 * Answers their members, and whether elements are left.
 *
 * It pops the elements that it looks at, so what it finds dead is out of the way.
 */
export const pollOldest = defineScript({
  name: "poll-oldest",
  keys: ["timeouts", "order", "compacted", "index"],
  args: ["limit", "step", "maxBytes"],
  needs: [find, takeOut],
  lua: /* lua */ `
local members, bytes = {}, 0
for _ = 1, step do
  if #members >= tonumber(limit) or bytes >= tonumber(maxBytes) then break end
  local element = redis.call("LPOP", compacted) or redis.call("LPOP", order)
  if not element then return { members, 0 } end
  local member = find(element)
  if member then
    takeOut({ member })
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
  keys: ["timeouts", "order", "compacted", "index", "target"],
  args: ["step"],
  needs: [find, takeOut, unpackMember],
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
    takeOut({ member })
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
  keys: ["timeouts", "order", "compacted", "index"],
  args: [],
  lua: /* lua */ `
local count = redis.call("ZCARD", timeouts)
redis.call("UNLINK", timeouts, order, compacted, index)
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
