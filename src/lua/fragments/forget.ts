import { defineFragment } from "../fragment.ts";

/**
 * `forget(members)`: removes whole members of messages that have left from the insertion order. For queues with `interop: "redisson"`, since Redisson removes them at once: addresses stay behind, and a step of
 * tidying removes them.
 *
 * Redis can remove from the middle of a LIST only by searching, in O(N). So a batch shares one pass:
 *
 * - Messages usually leave in the order in which they came, or in reverse. Members at either end of the LIST are
 *   trimmed.
 * - Other members are marked in place, and one LREM from the nearer end removes all marks. A binary search finds their
 *   positions: Delayline's members begin with an order stamp, and are in the order of the stamps, except for small
 *   differences between several producers. The batch shares the probes.
 * - Members that are not at the position that the search finds (Java's, which have no stamp, and those of rescheduled
 *   messages, which went to the end) are searched for: a few by one LREM each, many by reading through the LIST once.
 *
 * Microseconds per message in random order, 100 per batch, payloads of 100 bytes, on Redis 7.0:
 *
 *     in the LIST     LREM each    marked    read through
 *          10,000           130        13              32
 *         100,000           700        56             300
 *       1,000,000        13,000       285           3,600
 *
 * No client ever sees a mark, since a script is atomic. A client that may not LTRIM or LSET searches for each member. If
 * Redis refuses anything else, the members stay, and a sweep removes them: the messages have left, and the script has to
 * say so.
 */
export const forget = defineFragment({
  keys: ["order", "compacted"],
  lua: /* lua */ `
local marks = {}
local function forgetAll(members)
  local left, count = {}, #members
  for _, member in ipairs(members) do left[member] = true end
  local function cut(member)
    if not left[member] then return end
    left[member] = nil
    count = count - 1
  end

  local function cutAll(elements, from, to)
    for i = from, to do cut(elements[i]) end
  end

  if left[redis.call("LINDEX", order, 0)] then
    local elements, size = redis.call("LRANGE", order, 0, count - 1), 0
    while left[elements[size + 1]] do size = size + 1 end
    if not redis.pcall("LTRIM", order, size, -1).err then cutAll(elements, 1, size) end
  end
  if count > 0 and left[redis.call("LINDEX", order, -1)] then
    local elements = redis.call("LRANGE", order, -count, -1)
    local size = #elements
    while left[elements[size]] do size = size - 1 end
    if not redis.pcall("LTRIM", order, 0, size - #elements - 1).err then
      cutAll(elements, size + 1, #elements)
    end
  end
  if count == 0 then return end
  local length = redis.call("LLEN", order)

  local function stampOf(member)
    if #member < 25 or member:byte(1) ~= 16 or member:byte(2) ~= 0 then return nil end
    local high, low = struct.unpack(">I4I4", member, 2)
    return high * 4294967296 + low
  end
  local probes = {}
  local function probe(at)
    if not probes[at] then probes[at] = stampOf(redis.call("LINDEX", order, at)) or -1 end
    return probes[at]
  end

  local first, last, marked, mayMark = length, 0, 0, true
  local function mark(at, member)
    mayMark = not redis.pcall("LSET", order, at, "delayline: gone").err
    if not mayMark then return end
    cut(member)
    first, last, marked, marks[at] = math.min(first, at), math.max(last, at), marked + 1, member
  end

  for _, member in ipairs(members) do
    local stamp = left[member] and stampOf(member)
    if stamp then
      local low, high = 0, length - 1
      while low < high do
        local at = math.floor((low + high) / 2)
        local right = at
        -- Java's members have no stamp: skip a few of them to find one that has.
        while right < high and right < at + 10 and probe(right) < 0 do right = right + 1 end
        if probe(right) < stamp then low = right + 1 else high = at end
      end
      if redis.call("LINDEX", order, low) == member then
        mark(low, member)
      else
        local from = math.max(low - 50, 0)
        for i, element in ipairs(redis.call("LRANGE", order, from, low + 50)) do
          if left[element] then mark(from + i - 1, element) end
        end
      end
    end
  end
  local isRead = count >= 40
  if isRead then
    for from = 0, length - 1, 100 do
      for i, element in ipairs(redis.call("LRANGE", order, from, from + 99)) do
        if left[element] then mark(from + i - 1, element) end
      end
      if count == 0 then break end
    end
  end
  if marked > 0 then
    redis.call("LREM", order, last < length - first and marked or -marked, "delayline: gone")
    marks = {}
  end
  for _, member in ipairs(members) do
    -- While the LIST is being made exact again, a part of the members is in the compacted list.
    if left[member] and (isRead and mayMark or redis.call("LREM", order, 1, member) == 0) then
      redis.call("LREM", compacted, 1, member)
    end
  end
end
local function forget(members)
  if pcall(forgetAll, members) then return end
  for at, member in pairs(marks) do redis.call("LSET", order, at, member) end
  marks = {}
end
`,
});
