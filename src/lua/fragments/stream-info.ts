import { defineFragment } from "../fragment.ts";

/**
 * `fieldsOf(list)`: a table of names and values that Redis replied in turn in one list: the fields of a stream entry,
 * or a group or consumer as `XINFO` replies it. The order and number of the latter differ between versions of Redis.
 */
export const fieldsOf = defineFragment({
  lua: /* lua */ `
local function fieldsOf(list)
  local found = {}
  for i = 1, #list, 2 do found[list[i]] = list[i + 1] end
  return found
end
`,
});

/**
 * Ids of entries are `ms-seq`: two decimal numbers of up to 64 bits, more than a Lua number holds.
 *
 * `compareIds(a, b)`: negative, 0 or positive, as `a` is below, equal to or above `b`.
 * `rangeOf(ids)`: the lowest and the highest id.
 */
export const streamId = defineFragment({
  lua: /* lua */ `
local function compareDigits(x, y)
  if x == y then return 0 end
  if #x <= 15 and #y <= 15 then return x - y end
  if #x ~= #y then return #x - #y end
  for k = 1, #x, 15 do
    local difference = x:sub(k, k + 14) - y:sub(k, k + 14)
    if difference ~= 0 then return difference end
  end
  return 0
end
local function compareParts(ms, seq, otherMs, otherSeq)
  -- Neighbours usually share the millisecond, and Lua compares equal strings by their address.
  if ms == otherMs then return compareDigits(seq, otherSeq) end
  return compareDigits(ms, otherMs)
end
local function partsOf(id)
  return id:match("^(%d+)%-(%d+)$")
end
local function compareIds(a, b)
  local ms, seq = partsOf(a)
  return compareParts(ms, seq, partsOf(b))
end
local function rangeOf(ids)
  local first, last = ids[1], ids[1]
  local firstMs, firstSeq = partsOf(first)
  local lastMs, lastSeq = firstMs, firstSeq
  for i = 2, #ids do
    local ms, seq = partsOf(ids[i])
    -- Ids usually come in ascending order, so try the highest first.
    if compareParts(ms, seq, lastMs, lastSeq) > 0 then
      last, lastMs, lastSeq = ids[i], ms, seq
    elseif compareParts(ms, seq, firstMs, firstSeq) < 0 then
      first, firstMs, firstSeq = ids[i], ms, seq
    end
  end
  return first, last
end
`,
});

/**
 * `groupsOf()`: a table for each consumer group of the stream, with the field names of `XINFO GROUPS`. None without a
 * stream.
 */
export const groupsOf = defineFragment({
  keys: ["stream"],
  needs: [fieldsOf],
  lua: /* lua */ `
local function groupsOf()
  local groups = {}
  if redis.call("EXISTS", stream) == 0 then return groups end
  for i, fields in ipairs(redis.call("XINFO", "GROUPS", stream)) do groups[i] = fieldsOf(fields) end
  return groups
end
`,
});

/** `groupNames()`: the names of the stream's consumer groups; none without a stream. */
export const groupNames = defineFragment({
  keys: ["stream"],
  needs: [groupsOf],
  lua: /* lua */ `
local function groupNames()
  local names = {}
  for i, group in ipairs(groupsOf()) do names[i] = group.name end
  return names
end
`,
});

/**
 * `maxAttemptsIn(name)`: the most attempts of a message, as a consumer's name says; nil for a foreign name, and for one
 * without this number, which older releases made. See `consumer-name.ts` in `reliable/group/`.
 */
export const maxAttemptsIn = defineFragment({
  lua: /* lua */ `
local function maxAttemptsIn(name)
  return tonumber(name:match("^delayline:%d+:([1-9]%d*):"))
end
`,
});

/**
 * `consumersOf(group)`: a table for each consumer of the group, with the field names of `XINFO CONSUMERS`. None if
 * the stream or the group is missing.
 */
export const consumersOf = defineFragment({
  keys: ["stream"],
  needs: [fieldsOf],
  lua: /* lua */ `
local function consumersOf(group)
  if redis.call("EXISTS", stream) == 0 then return {} end
  local found = redis.pcall("XINFO", "CONSUMERS", stream, group)
  if found.err then
    if found.err:find("^%-?NOGROUP") then return {} end
    -- Call it again to raise the error: Redis 6.2 and 7.0 differ in the form that error() needs.
    found = redis.call("XINFO", "CONSUMERS", stream, group)
  end
  local consumers = {}
  for i, fields in ipairs(found) do consumers[i] = fieldsOf(fields) end
  return consumers
end
`,
});

/**
 * `isAlive(consumer, timeout)`: whether Redis has seen such a consumer within the lease timeout in its name, in
 * milliseconds; `timeout` applies to a name without one. See `consumer-name.ts` in `reliable/group/`.
 */
export const isAlive = defineFragment({
  lua: /* lua */ `
local function isAlive(consumer, timeout)
  return consumer.idle < (tonumber(consumer.name:match("^delayline:(%d+):")) or tonumber(timeout))
end
`,
});
